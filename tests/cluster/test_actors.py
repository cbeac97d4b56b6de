"""Actors as processes: what they play, what is left of them, and what their deaths cost."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from cluster.supervisors import TINY, alone, children, settings, shared_memory
from pools.workers.helpers import alive, gone
from sparring import trusted
from sparring.cluster.actors.learner import DistributedLearner
from sparring.cluster.actors.packing import counts_of
from sparring.cluster.actors.processes import ProcessSupervisor
from sparring.cluster.actors.supervisor import ActorHandle, RolloutBatch
from sparring.cluster.learners import start_actors
from sparring.config import TrainConfig
from sparring.errors import SparringError, SparringWarning
from sparring.learn.learner import LostError
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import merged
from sparring.training.records.metrics import MetricsError, read

LONG_S = 500.0
"""Seconds after which a test gives up waiting."""


class Recording:
    """A supervisor that remembers what was handed in."""

    def __init__(self, supervisor: ProcessSupervisor) -> None:
        self.supervisor, self.counts = supervisor, dict[Any, int]()
        self.incarnations = set[tuple[int, int]]()
        """Actors that have handed in something, and in which incarnation."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.supervisor, name)

    def receive(self, timeout_s: float) -> list[RolloutBatch]:
        batches = list(self.supervisor.receive(timeout_s))
        for batch in batches:
            assert batch.request not in self.counts, "handed in twice"
            self.counts[batch.request] = counts_of(batch.arrays)["decisions"]
            self.incarnations.add((batch.request.actor, batch.incarnation))
        return batches

    def has_played(self, handle: ActorHandle) -> bool:
        return (handle.share.index, handle.share.incarnation) in self.incarnations

    def learned_from(self, learner: DistributedLearner) -> int:
        """Decisions of everything that was handed in and not left lying."""
        queues = learner.collector.queues
        waiting = {
            one.request for queue in queues for one in queue.pending if one.batch is not None
        }
        return sum(count for request, count in self.counts.items() if request not in waiting)


def recorded(config: TrainConfig) -> tuple[DistributedLearner, Recording]:
    plan = resolve([config])
    supervisor = start_actors(config, plan)
    assert isinstance(supervisor, ProcessSupervisor)
    recording = Recording(supervisor)
    return DistributedLearner(recording, config.distributed, plan), recording


def check_nothing_left(before: int = 0) -> None:
    """Check processes and shared memory. before: pieces of memory that other tests still hold."""
    gc.collect()
    assert not [one for one in children() if "sparring.cluster.actors.actor" in one]
    assert len(shared_memory()) <= before


def test_two_processes_play_as_one_does_and_leave_nothing() -> None:
    config = settings(actors=2, distributed={"lockstep": True})
    learner, supervisor = recorded(config)
    try:
        one: Any = alone(config)
        for update in range(2):
            learner.iterate(0.1 * update)
            one.iterate(0.1 * update)
        mine, theirs = learner.snapshot(), one.snapshot()
        for group, tensors in theirs.tensors.items():
            for name, value in tensors.items():
                assert torch.equal(value, mine.tensors[group][name]), (group, name)
        assert (
            learner.collector.decisions
            == supervisor.learned_from(learner)
            == one.collector.decisions
        )
    finally:
        learner.close()
    learner.close()  # a second time does nothing
    del learner, supervisor, mine
    check_nothing_left()


@pytest.mark.slow
def test_one_that_is_killed_in_lockstep_is_started_again_and_saved() -> None:
    config = settings(actors=2, distributed={"lockstep": True})
    learner, supervisor = recorded(config)
    try:
        before = learner.iterate(0.0)[0].decisions
        os.kill(supervisor.pids[0], signal.SIGKILL)
        with pytest.warns(SparringWarning, match=r"actor 0 died \(signal SIGKILL\)"):
            report = learner.iterate(0.3)[0]
        assert report.stats["distributed/restarts"] == 1
        assert report.decisions == supervisor.learned_from(learner) > before
        assert {"games.bin", "open.bin"} <= learner.snapshot().blobs.keys()
    finally:
        learner.close()
    del learner, supervisor, report
    check_nothing_left()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_twenty_kills_lose_what_was_in_flight_and_nothing_is_counted_twice() -> None:
    config = settings(actors=4, distributed={"max_lag": 4, "actors_per_update": 1})
    learner, supervisor = recorded(config)
    rng, until = np.random.default_rng(0), time.monotonic() + LONG_S
    decisions, killed, at_once = 0, set[tuple[int, int]](), [1, 3, 2, 1, 3, 2, 1, 3, 2, 2]

    def dead(handle: ActorHandle) -> bool:  # and nobody knows yet
        return (handle.share.index, handle.share.incarnation) in killed

    try:
        while supervisor.supervisor.restarts < 20:
            assert time.monotonic() < until, (
                f"{killed} killed, {supervisor.supervisor.restarts} restarts"
            )
            report = learner.iterate(0.0)[0]
            assert report.decisions > decisions
            decisions = report.decisions
            assert report.stats["distributed/lag_max"] <= 4
            assert decisions == supervisor.learned_from(learner)
            handles = [
                handle
                for handle in supervisor.supervisor._handles
                if supervisor.has_played(handle) and not dead(handle)
            ]
            if at_once and len(handles) >= at_once[0]:
                for handle in rng.permutation(np.array(handles, object))[: at_once.pop(0)]:
                    os.kill(handle.process.pid, signal.SIGKILL)
                    killed.add((handle.share.index, handle.share.incarnation))
        assert report.stats["distributed/restarts"] == len(killed) == 20
        assert report.stats["distributed/lost"] <= 20
    finally:
        learner.close()
    del learner, supervisor, report, handle, handles
    check_nothing_left()


@pytest.mark.slow
def test_an_actor_that_hangs_is_ended_and_started_again() -> None:
    config = settings(actors=2, distributed={"lockstep": True, "timeout_s": 5.0})
    learner, supervisor = recorded(config)
    try:
        learner.iterate(0.0)
        os.kill(supervisor.pids[1], signal.SIGSTOP)
        with pytest.warns(SparringWarning, match="actor 1 hung"):
            report = learner.iterate(0.0)[0]
        assert report.stats["distributed/restarts"] == 1
        os.kill(supervisor.pids[0], signal.SIGSTOP)  # also one that cannot hear is ended
        began = time.monotonic()
    finally:
        learner.close()
    assert time.monotonic() - began < 10
    del learner, supervisor
    check_nothing_left()


@pytest.mark.slow
def test_a_run_gives_up_after_so_many_deaths() -> None:
    config = settings(actors=1, distributed={"lockstep": True, "max_restarts": 0})
    learner, supervisor = recorded(config)
    try:
        learner.iterate(0.0)
        os.kill(supervisor.pids[0], signal.SIGKILL)
        with pytest.raises(LostError, match=r"more than distributed.max_restarts 0"):
            learner.iterate(0.0)
        left = learner.snapshot()  # what was learned is saved, without games
        assert left.meta["update"] == 1
        assert not left.blobs
    finally:
        learner.close()
    del learner, supervisor
    check_nothing_left()


@pytest.mark.slow
def test_what_is_wrong_in_an_actor_is_told_in_one_line() -> None:
    config = settings(actors=1)
    plan = resolve([config])
    broken = replace(config, opponents=("no_such_folder=1",))
    learner = make_distributed(broken, config, plan)
    try:
        with pytest.raises(SparringError, match="no_such_folder"):
            learner.iterate(0.0)
    finally:
        learner.close()


def make_distributed(theirs: TrainConfig, mine: TrainConfig, plan: Any) -> DistributedLearner:
    return DistributedLearner(start_actors(theirs, plan), mine.distributed, plan)


# What is left when a learner ends

SCRIPT = """
import sys
from cluster.supervisors import settings
from sparring.cluster.learners import with_actors
from sparring.training.planning.plan import resolve
config = settings(actors=2)
learner = with_actors(config, resolve([config]))
learner.iterate(0.0)
print(*learner.supervisor.pids, flush=True)
while True:
    learner.iterate(0.0)
"""


def is_there(pid: int) -> bool:
    try:
        return "sparring.cluster.actors.actor" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def wait_until_gone(pids: list[int]) -> None:
    until = time.monotonic() + 20
    while any(map(is_there, pids)):
        assert time.monotonic() < until, "actors are left"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_learner_that_is_killed_leaves_no_actor(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, env=searched()
    )
    assert process.stdout
    pids = list(map(int, process.stdout.readline().split()))
    assert len(pids) == 2
    assert all(map(is_there, pids))
    process.send_signal(number)
    process.wait(20)
    process.stdout.close()
    wait_until_gone(pids)


@pytest.mark.slow
def test_ctrl_c_saves_the_run_and_ends_its_actors(tmp_path: Path) -> None:
    words = "train tic_tac_toe --actors 2 --minutes 5 --collect.games 16 --collect.steps 8"
    words += f" --threads 1 --eval.off --no-tensorboard --runs {tmp_path}"
    process = subprocess.Popen(
        [sys.executable, "-m", "sparring", *words.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=searched(),
        process_group=0,
    )
    until, lags = time.monotonic() + LONG_S, list[str]()
    while not lags:
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.1)
        for run in tmp_path.iterdir():
            with contextlib.suppress(MetricsError):  # not there yet
                lags = list(read(run, "distributed/lag_mean"))
    actors = [pid for pid in descendants(process.pid) if is_there(pid)]
    assert len(actors) == 2
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 130, said.decode()
    assert b"saved in" in said
    assert b"Traceback" not in said
    wait_until_gone(actors)


def searched() -> dict[str, str]:
    """Where our modules and those of the tests are found."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def descendants(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a resumed run restores:sparring.errors.SparringWarning")
def test_an_environment_that_raises_in_every_rollout_ends_a_run_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("steps_wrong.py").write_text(
        "import gymnasium\n"
        "class Wrong(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Discrete(2)\n"
        "    action_space = gymnasium.spaces.Discrete(2)\n"
        "    def reset(self, seed=None, options=None):\n"
        "        return 0, {}\n"
        "    def step(self, action):\n"
        "        raise ValueError('the simulator lost its way')\n"
    )
    with (
        pytest.warns(SparringWarning, match="it is restarted"),
        pytest.raises(
            SparringError, match=r"3 times in a row without a rollout(.|\n)*lost its way"
        ),
    ):
        sparring.train(
            "steps_wrong.py:Wrong", actors=2, updates=9, quiet=True, threads=1, eval={"off": True}
        )


SERVED = """
import os, subprocess
import own_envs
def make_env():
    simulator = subprocess.Popen(["sleep", "1000"])
    with open(os.environ["SIMULATORS"], "a") as file:
        print(simulator.pid, file=file)
    return own_envs.make_cards()
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_what_environments_have_started_ends_with_their_actor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as simulators: whether an actor is killed, or ends with its learner."""
    (tmp_path / "served.py").write_text(SERVED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", searched()["PYTHONPATH"])
    monkeypatch.setenv("SIMULATORS", str(tmp_path / "simulators"))
    trusted.allow("served:make_env")
    for key, value in trusted.environment().items():
        monkeypatch.setenv(key, value)

    def left() -> list[int]:
        """Those of actors; this process has made an environment, too."""
        pids = [int(pid) for pid in (tmp_path / "simulators").read_text().split()]
        return [pid for pid in pids if pid not in descendants(os.getpid()) and alive(pid)]

    base = merged(TrainConfig(), TINY, "test")
    changes = {"game": "served:make_env", "actors": 1, "collect": {"games": 2}}
    learner, supervisor = recorded(merged(base, changes, "test"))
    try:
        learner.iterate(0.0)
        first = left()
        assert first
        os.kill(supervisor.pids[0], signal.SIGKILL)
        while not supervisor.restarts:
            learner.iterate(0.0)
        assert gone(first)
        learner.iterate(0.0)
        second = left()
        assert second
    finally:
        learner.close()
    assert gone(second)
    for pid in descendants(os.getpid()):
        if str(pid) in (tmp_path / "simulators").read_text().split():
            os.kill(pid, signal.SIGKILL)
