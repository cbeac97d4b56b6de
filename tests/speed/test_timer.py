from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sparring.errors import ConfigError
from sparring.learn.learner import closing_learner
from sparring.speed.rounds import Round, fill_slots, measure_round, steady
from sparring.speed.timer import TimerProcess, UnfitError
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of, merged, with_preset
from sparring.usage import cpu_s, descendants, resident_bytes
from speed.timer_helpers import small

COUNTS = ("decisions", "samples", "forced", "games", "optimizer_steps", "opponent_rows")
LIMIT_S = 30.0


def counts(rounds: list[Round]) -> list[tuple[int, ...]]:
    return [tuple(getattr(one, name) for name in COUNTS) for one in rounds]


def gone(pid: int) -> bool:
    """Whether a process ends within a bounded time."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("opponents", ["self=1", "past=1"])
def test_a_timer_measures_what_this_process_would(timer: TimerProcess, opponents: str) -> None:
    config = small(opponents=(opponents,))
    opened = timer.open("same", config, warm_up=1)
    measurement = timer.time("same", 0.0, min_rounds=3)
    timer.close("same")
    plan = resolve(members_of(config))
    learner = make_learner(config, plan)
    with closing_learner(learner):
        if plan.participants.slots:
            fill_slots(learner, plan)
        here = [measure_round(learner) for _ in range(4)]
    assert counts(list(measurement.rounds)) == counts(here)[1:]
    assert (measurement.rounds[0].opponent_rows > 0) == (opponents == "past=1")
    assert (opened.games, opened.steps, opened.threads, opened.device) == (16, 16, 1, "cpu")
    assert measurement.decisions_per_s > 0
    assert measurement.memory_bytes > opened.memory_bytes
    assert 0.99 < sum(measurement.phases.values()) < 1.01


def test_several_are_open_at_once_and_know_nothing_of_each_other(timer: TimerProcess) -> None:
    alone = small(seed=3)
    timer.open("one", alone, warm_up=0)
    first = timer.time("one", 0.0, min_rounds=2)
    timer.close("one")
    timer.open("one", alone, warm_up=0)
    timer.open("two", small(seed=4), warm_up=0)
    mixed = []
    for _ in range(2):
        mixed += timer.time("one", 0.0).rounds[:1]
        timer.time("two", 0.0)
    timer.close("one")
    timer.close("two")
    assert counts(mixed) == counts(list(first.rounds))


def test_what_is_refused_is_said_and_the_rest_stays_open(timer: TimerProcess) -> None:
    timer.open("fine", small(), warm_up=0)
    process = timer.pid
    with pytest.raises(ConfigError, match="nobody"):
        timer.open("wrong", small(opponents=("nobody=1",)))
    with pytest.raises(UnfitError, match="'wrong' is not open; 'fine' is"):
        timer.time("wrong", 0.0)
    huge = replace(small(), collect=replace(small().collect, games=2**24, steps=4096))
    with pytest.raises((ConfigError, UnfitError), match="memory"):
        timer.open("huge", huge)
    assert timer.time("fine", 0.0).rounds
    timer.close("fine")
    assert timer.pid == process


def test_settings_of_a_run_under_way_do_the_same_work_in_every_round() -> None:
    assert steady(with_preset("skull_king")).ppo.target_kl.values == (0.0,)
    dqn = with_preset("tic_tac_toe", algo="dqn")
    assert steady(dqn).replay.warmup == 0
    assert steady(dqn).dqn.epsilon.values == dqn.dqn.epsilon.values[-1:]
    roles = merged(
        with_preset("skull_king", hierarchy=True),
        {"hierarchy": {"on": True}, "roles": {"manager": {"ppo": {"target_kl": 0.5}}}},
        "test",
    )
    assert "manager.ppo.target_kl=0.0" in steady(roles).roles


def test_those_that_work_for_a_process_count() -> None:
    before = resident_bytes(descendants())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        try:
            assert child.pid in descendants()
            assert resident_bytes(descendants()) > before
            assert cpu_s(descendants()) >= cpu_s()
        finally:
            child.kill()
    assert child.pid not in descendants()


@pytest.mark.slow
def test_a_process_that_dies_is_told_and_the_next_one_works() -> None:
    with TimerProcess() as timer:
        timer.open("one", small(), warm_up=0)
        assert timer.pid
        os.kill(timer.pid, signal.SIGKILL)
        with pytest.raises(UnfitError, match="killed, as happens when memory runs out"):
            timer.time("one", 0.0)
        with pytest.raises(UnfitError, match="'one' is not open; nothing is"):
            timer.time("one", 0.0)
        timer.open("one", small(), warm_up=0)
        assert timer.time("one", 0.0).rounds


@pytest.mark.slow
def test_memory_that_runs_out_ends_the_settings_alone() -> None:
    with TimerProcess() as timer:
        timer.open("small", small(), warm_up=0)
        assert timer.pid
        room = 400 * 2**20
        size = int(Path(f"/proc/{timer.pid}/statm").read_text().split()[0]) * resource.getpagesize()
        resource.prlimit(timer.pid, resource.RLIMIT_AS, (size + room, size + room))
        large = replace(small(), collect=replace(small().collect, games=65_536, steps=512))
        with pytest.raises((ConfigError, UnfitError), match="memory"):
            timer.open("large", large)
        assert timer.time("small", 0.0).rounds


@pytest.mark.slow
def test_workers_of_an_environment_count_and_go_with_the_gauge() -> None:
    others = descendants()  # that measurements of other tests keep
    with TimerProcess() as timer:
        config = small("own_envs:make_cards", workers="2")
        opened = timer.open("cards", config, warm_up=0)
        assert opened.workers == 2
        assert opened.memory_bytes > 2 * 5 * 2**20
        assert timer.time("cards", 0.3).cpu_cores > 0
        workers = [pid for pid in descendants() if pid not in (timer.pid, *others)]
        assert len(workers) == 2
    assert all(map(gone, workers))


SCRIPT = """
import sys
from sparring.speed.timer import TimerProcess
from speed.timer_helpers import small
with TimerProcess() as timer:
    timer.open("one", small(), warm_up=0)
    print(timer.pid, flush=True)
    timer.time("one", 3600.0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[1],
    ) as program:
        assert program.stdout
        try:
            child = int(program.stdout.readline())
            program.send_signal(number)
            assert program.wait(LIMIT_S) != 0
            assert gone(child)
        finally:
            program.kill()
