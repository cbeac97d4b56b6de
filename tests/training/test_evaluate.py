"""Evaluation beside training: it answers, never blocks, and never outlives its parent."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sparring import Rules, SparringError
from sparring.config import NetConfig
from sparring.errors import SparringWarning
from sparring.league.arena import evaluate
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.store.policies import load_policy, save_policy
from sparring.training import evaluate as evaluate_module
from sparring.training.evaluate import EvalWorker, evaluator, loading_early

LIMIT_S = 60.0
ENDLESS = 20_000_000
"""Games that nobody waits for."""

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs pidfd")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rules = Rules("tic_tac_toe")
    policy = Policy(rules, Perceptron(rules, NetConfig(hidden=(32, 32))))
    return str(save_policy(policy, tmp_path_factory.mktemp("saved") / "policy"))


def quick_worker() -> EvalWorker:
    """A worker of normal priority, so that tests pass on a busy machine too."""
    return EvalWorker(nice=0, idle=False)


@pytest.fixture(scope="module")
def worker() -> Iterator[EvalWorker]:
    """Started by a thread that is over."""
    with quick_worker() as running:
        starter = threading.Thread(target=running.submit, args=({"id": 0},))
        starter.start()
        starter.join()
        assert [answer["id"] for answer in running.drain(LIMIT_S)] == [0]
        yield running


def ask(number: int, saved: str, **changes: Any) -> dict[str, Any]:
    request = {"id": number, "checkpoint": saved, "opponents": ["random"], "games": 64, "seed": 1}
    return {**request, **changes}


def wait_for_end(pid: int) -> None:
    """Wait until a process that is not our child is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], LIMIT_S)[0], f"process {pid} still lives"
    finally:
        os.close(handle)


def test_it_answers_what_a_match_in_this_process_says(worker: EvalWorker, saved: str) -> None:
    worker.submit(ask(1, saved, opponents=["random", "careful", saved]))
    worker.submit(ask(2, saved, seed=2, greedy=False))
    assert worker.busy
    first, second = worker.drain(LIMIT_S)
    assert not worker.busy
    assert (first["id"], second["id"]) == (1, 2)
    policy, copy = load_policy(saved), load_policy(saved, name=saved)
    results = evaluate(policy, ["random", "careful", copy], games=64, seed=1)
    assert first["results"][saved]["opening_plies"] == 3  # or they would play one game 32 times
    assert first["results"][saved]["seat_games"] == [32, 32]
    pairs = {name: found.pop("pairs") for name, found in first["results"].items()}
    assert first["results"] == {name: result.summary() for name, result in results.items()}
    counts = results["careful"].first
    assert pairs["careful"] == [counts.wins, counts.ties, counts.losses]
    drawn = evaluate(policy, ["random"], games=64, seed=2, greedy=False)
    second["results"]["random"].pop("pairs")
    assert second["results"]["random"] == drawn["random"].summary()
    assert second["seconds"] > 0


def test_bad_requests_are_answered_and_survived(
    worker: EvalWorker, saved: str, tmp_path: Path
) -> None:
    worker.submit(ask(0, saved))
    worker.drain(LIMIT_S)
    pid = worker.pid
    bad = {
        1: ask(1, str(tmp_path / "vanished")),
        2: ask(2, str(tmp_path)),
        3: ask(3, saved, opponents=["carefull"]),
        4: ask(4, saved, games=0),
        5: {"id": 5, "checkpoint": saved},
        6: ask(6, saved, games="many"),
    }
    for request in bad.values():
        worker.submit(request)
    errors = {answer["id"]: answer["error"] for answer in worker.drain(LIMIT_S)}
    assert list(errors) == list(bad)
    assert "no policy" in errors[1]
    assert "no checkpoint" in errors[2]
    assert "did you mean 'careful'" in errors[3]
    assert "at least 2" in errors[4]
    assert "opponents" in errors[5]
    worker.submit(ask(7, saved))
    assert "results" in worker.drain(LIMIT_S)[0]
    assert worker.pid == pid


def test_ids_must_be_told_apart(worker: EvalWorker, saved: str) -> None:
    worker.submit(ask(1, saved))
    for number in (1, None):
        with pytest.raises(SparringError, match="a unique id"):
            worker.submit({**ask(1, saved), "id": number})
    worker.drain(LIMIT_S)


def test_nothing_blocks_while_it_is_busy(saved: str) -> None:
    worker = quick_worker()
    worker.submit(ask(0, saved, games=ENDLESS))
    pid = worker.pid
    assert pid is not None
    started = time.monotonic()
    for number in range(1, 2000):  # far more than a pipe holds
        worker.submit(ask(number, saved))
    assert worker.poll() == []
    assert worker.busy
    assert time.monotonic() - started < 5
    worker.close(timeout_s=30.0)
    wait_for_end(pid)
    assert worker.pid is None
    assert worker.poll() == []


def test_a_crash_is_told_once_and_the_next_request_starts_anew(saved: str) -> None:
    with quick_worker() as worker:
        worker.submit(ask(1, saved, games=ENDLESS))
        first = worker.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        with pytest.warns(SparringWarning, match="SIGKILL") as told:
            answers = worker.drain(LIMIT_S)
        assert len(told) == 1
        assert answers[0]["id"] == 1
        assert "SIGKILL" in answers[0]["error"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert worker.poll() == []
            worker.submit(ask(1, saved))
            assert "results" in worker.drain(LIMIT_S)[0]
        assert worker.pid != first


def test_last_words_are_kept(saved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/sh")  # which cannot run a Python module
    worker = quick_worker()
    with pytest.warns(SparringWarning, match="exit code .*last words.*sparring"):
        worker.submit(ask(1, saved))
        assert worker.drain(LIMIT_S)[0]["error"]


@linux
def test_it_takes_the_lowest_priority_once_nobody_waits_and_no_ctrl_c(saved: str) -> None:
    with EvalWorker() as worker:
        worker.submit(ask(0, saved, urgent=True))
        assert worker.loading
        pid = worker.pid
        assert pid is not None
        assert "results" in worker.drain(LIMIT_S)[0]
        assert not worker.loading
        assert os.sched_getscheduler(pid) == os.SCHED_OTHER
        assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0)
        worker.submit(ask(1, saved, games=ENDLESS))
        assert os.getpgid(pid) == pid
        assert os.getsid(pid) == os.getsid(0)
        until = time.monotonic() + LIMIT_S
        while priorities(pid) != {19} and time.monotonic() < until:  # thread by thread
            time.sleep(0.01)
        assert priorities(pid) == {19}
        assert os.sched_getscheduler(pid) == os.SCHED_IDLE


def priorities(pid: int) -> set[int]:
    """Those of all threads of a process."""
    tasks = (int(task.name) for task in Path(f"/proc/{pid}/task").iterdir())
    return {os.getpriority(os.PRIO_PROCESS, task) for task in tasks}


@linux
def test_a_worker_that_loads_early_is_the_one_that_a_training_takes() -> None:
    with loading_early():
        early = evaluator(1)
        assert early.pid is not None
        other = evaluator(1)
        assert other.pid is None  # the next training starts its own
    assert early.pid is not None
    early.close(timeout_s=0.0)


@linux
def test_a_worker_that_loads_early_and_is_not_taken_ends() -> None:
    with loading_early():
        pid = evaluate_module._early[0].pid
        assert pid is not None
    wait_for_end(pid)
    with loading_early():
        pid = evaluate_module._early[0].pid
        assert pid is not None
        assert evaluator(2).pid is None  # another number of threads
        wait_for_end(pid)


@linux
def test_it_outlives_the_thread_that_started_it(worker: EvalWorker, saved: str) -> None:
    pid = worker.pid
    assert pid is not None
    worker.submit(ask(2, saved))
    assert "results" in worker.drain(LIMIT_S)[0]
    assert worker.pid == pid


PARENT = """
import subprocess, sys, time
from sparring.training.evaluate import EvalWorker
worker = EvalWorker(nice=0, idle=False)
request = {{"checkpoint": {saved!r}, "opponents": ["random"], "seed": 0}}
if {answered}:
    worker.submit({{"id": 1, "games": 64, **request}})
    worker.drain(60)
worker.submit({{"id": 2, "games": {games}, **request}})
print(worker.pid, flush=True)
if {held}:
    stdin = worker._process.channel.socket.fileno()
    sleeper = subprocess.Popen(["sleep", "600"], pass_fds=[stdin])
    print(sleeper.pid, flush=True)
time.sleep(600)
"""


@linux
@pytest.mark.parametrize(
    ("answered", "held"),
    [
        (True, True),
        pytest.param(False, False, marks=pytest.mark.slow),
        pytest.param(False, True, marks=pytest.mark.slow),
        pytest.param(True, False, marks=pytest.mark.slow),
    ],
)
def test_no_orphan_when_the_parent_is_killed(saved: str, answered: bool, held: bool) -> None:
    """At any moment, and also if another process keeps the pipe open."""
    script = PARENT.format(saved=saved, answered=answered, games=ENDLESS, held=held)
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    pid = int(parent.stdout.readline())
    sleeper = int(parent.stdout.readline()) if held else None
    try:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        wait_for_end(pid)
    finally:
        parent.stdout.close()
        if sleeper:
            os.kill(sleeper, signal.SIGKILL)
