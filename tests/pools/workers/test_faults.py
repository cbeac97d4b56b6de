"""Workers that fail: started again, their games too, and nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pools.workers.faulty_envs import DIE, HANG, RAISE, SPEAK, STAY
from pools.workers.helpers import alive, copied, gone, memory_maps, open_files, stuck
from sparring.errors import ConfigError, SparringError, SparringWarning
from sparring.pools.workers import WorkerPool

TROUBLE = "pools.workers.faulty_envs:make_trouble"
SERVED = "pools.workers.faulty_envs:make_served"
GAMES = 4


def quiet(*actions: int) -> np.ndarray:
    return np.array([*actions, *[STAY] * (GAMES - len(actions))])


def test_faults_cost_their_worker_its_games_and_nobody_else() -> None:
    """Raising, hanging, dying: the games are cut unseen, others go on, and it is told once."""
    before = open_files(), memory_maps()
    with WorkerPool(TROUBLE, GAMES, workers=2, step_timeout_s=0.5) as pool:
        first = copied(pool.reset())
        pids, told = pool.pids, pool.restarts
        for fault, said in (
            (RAISE, "ValueError: the simulator lost its way"),
            (HANG, "longer than env.step_timeout_s 0.5"),
            (DIE, "killed by SIGKILL"),
            (SPEAK, "a word of the simulator"),
        ):
            pool.step(quiet())
            with pytest.warns(SparringWarning, match=said):
                batch = pool.step(quiet(fault))
            told += 1
            assert pool.restarts == told
            assert batch.truncated.tolist() == [True, True, False, False]
            assert not len(batch.final_game)
            assert batch.reward[:, 0, 0].tolist() == [0, 0, 1, 1]
            assert batch.numbers[:, 1].tolist() == [0, 0, *[told * 2] * 2]
        again = pool.step(quiet(RAISE))  # the same fault is not told again
        assert again.truncated.tolist()[:2] == [True, True]
        assert pool.pids[0] != pids[0]
        assert pool.pids[1] == pids[1]
        # Other beginnings, not those of the pool's seed once more.
        assert again.numbers[0, 0] != first["obs"].view(np.float32)[0, 0]
        assert pool.stats()["workers/restarts"] == told + 1
        pids += pool.pids
    assert gone(pids)
    del pool, batch, again
    assert (open_files(), memory_maps()) == before


@pytest.mark.slow
def test_actions_for_games_that_are_gone_are_dropped() -> None:
    """A worker that dies while nobody waits for it is noticed at the next step."""
    with WorkerPool(TROUBLE, GAMES, workers=2, groups=2) as pool:
        pool.reset()
        pool.send([STAY, STAY], 1)
        os.kill(pool.pids[0], signal.SIGKILL)
        assert gone(pool.pids[:1])
        with pytest.warns(SparringWarning, match="killed by SIGKILL"):
            assert pool.ready([1]) == [1]  # it was looked for at once
            pool.send([STAY, STAY], 0)
            assert pool.ready([0]) == [0]
        assert pool.recv(0).truncated.all()
        assert not pool.recv(1).truncated.any()
        assert pool.batch(0).numbers[:, 1].tolist() == [0, 0]


@pytest.mark.slow
def test_it_gives_up_in_the_end() -> None:
    with WorkerPool(TROUBLE, GAMES, workers=1, max_restarts=1) as pool:
        pool.reset()
        with pytest.warns(SparringWarning) as told:
            pool.step(quiet(RAISE))
        (line,) = str(told[0].message).splitlines()
        assert re.search(r"ValueError: the simulator lost its way \(faulty_envs.py:\d+\)", line)
        with pytest.raises(SparringError, match=r"failed 2 times, more than env.max_restarts 1"):
            pool.step(quiet(RAISE))
        assert gone(pool.pids)


@pytest.mark.slow
def test_a_worker_that_never_begins_again_is_not_started_for_ever() -> None:
    word = "pools.workers.faulty_envs:make_mortal"
    with WorkerPool(word, 1, workers=1, seed=3) as pool:
        pool.reset()
        with (
            pytest.warns(SparringWarning),
            pytest.raises(SparringError, match=r"3 times in a row.*no second life"),
        ):
            pool.step([RAISE])


@pytest.mark.slow
def test_a_worker_that_dies_of_flags_has_them_afterwards(tmp_path: Path) -> None:
    with WorkerPool("pools.workers.faulty_envs:make_touchy", 2, workers=1) as pool:
        pool.reset()
        with pytest.warns(SparringWarning, match="killed by SIGKILL"):
            pool.set_config(speed=6, died=str(tmp_path / "died"))
        pool.step([STAY, STAY])
        assert pool.step([STAY, STAY]).numbers[:, 1].tolist() == [6, 6]
        with pytest.raises(ConfigError, match="refuses the flags"):
            pool.set_config(color="red")
        with pytest.warns(SparringWarning, match="lost its way"):  # refused ones are not told again
            pool.step([RAISE, STAY])
        assert pool.step([STAY, STAY]).numbers[:, 1].tolist() == [6, 6]


@pytest.mark.slow
def test_a_process_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no room for another process")

    before = open_files()
    monkeypatch.setattr("sparring.processes.start_python", full)
    with pytest.raises(OSError, match="no room"):
        WorkerPool(TROUBLE, 2, workers=2)
    assert open_files() == before


PROGRAM = """
import sys
from sparring.pools.workers import WorkerPool
if __name__ == "__main__":
    pool = WorkerPool(sys.argv[1], 2, workers=2)
    pool.reset()
    print(*pool.pids, flush=True)
    pool.step([int(sys.argv[2])] * 2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed_by", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_outlives_its_parent(killed_by: signal.Signals, tmp_path: Path) -> None:
    """Also while environments hang in the middle of a step, and what these have started."""
    simulators = tmp_path / "simulators"
    words = [sys.executable, "-c", PROGRAM, SERVED, str(HANG)]
    path = os.pathsep.join(filter(None, sys.path))
    child = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path, "SIMULATORS": str(simulators)},
    )
    try:
        assert child.stdout is not None
        pids = [int(pid) for pid in child.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(alive, pids))
        child.send_signal(killed_by)
        assert child.wait(30) != 0
        assert gone(pids)
        assert gone([int(pid) for pid in simulators.read_text().split()])
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


@pytest.mark.parametrize("killed_by", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_is_stuck_in_c_code_does_not_outlive_its_parent(
    killed_by: signal.Signals,
) -> None:
    """It holds Python's lock and ignores what it could be asked by."""
    path = os.pathsep.join(filter(None, sys.path))
    words = [sys.executable, "-c", PROGRAM, "hostile_envs:make_stuck", "0"]
    child = subprocess.Popen(
        words, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}, text=True
    )
    assert child.stdout is not None
    with child, child.stdout:
        pids = [int(pid) for pid in child.stdout.readline().split()]
        assert len(pids) == 2
        assert stuck(pids)
        child.send_signal(killed_by)
        assert child.wait(30) != 0
        assert gone(pids)


@pytest.mark.slow
def test_what_was_finished_counts_and_nothing_is_linked_across() -> None:
    """A group had answered when its worker died in another one: the next step begins anew."""
    with WorkerPool(TROUBLE, GAMES, workers=1, groups=2) as pool:
        pool.reset()
        pids = pool.pids
        pool.send([STAY, STAY], 0)
        pool.send([STAY, DIE], 1)
        assert gone(pids)
        with pytest.warns(SparringWarning, match="killed by SIGKILL"):
            assert pool.ready([0, 1]) == [0]
        answered = pool.recv(0)
        assert not answered.truncated.any()
        assert answered.reward[:, 0, 0].tolist() == [1, 1]
        assert answered.numbers[:, 1].tolist() == [1, 1]
        pool.send([STAY, STAY], 0)
        for slot in range(2):
            batch = pool.recv(slot)
            assert batch.truncated.all()
            assert not len(batch.final_game)
            assert batch.numbers[:, 1].tolist() == [0, 0]


@pytest.mark.slow
def test_errors_of_groups_say_their_step_and_lines_end_with_a_word(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparring.pools.workers.supervisor.MAX_LINES", 2)
    with WorkerPool("pools.workers.faulty_envs:make_chatty", 2, workers=1) as pool:
        pool.reset()
        for step in range(4):
            for slot in (0, 1):
                pool.send(np.array([STAY]), slot)
                pool.recv(slot)
            assert pool.steps == step + 1
        pool.reset()
        assert pool.steps == 0
    said = [
        line for line in capfd.readouterr().err.splitlines() if "age" in line or "printed" in line
    ]
    assert said[:2] == ["age 0", "age 1"]
    assert len(said) == 3
    assert "printed 2 lines; no more are shown" in said[2]
