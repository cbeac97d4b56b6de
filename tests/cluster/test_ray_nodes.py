"""A run over two nodes of Ray, of which the second dies, comes late, or is cut off."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.nodes import HEAD, PORT, SECOND, TwoNodes, can_make_networks
from cluster.rays import NEEDS_RAY
from sparring.training.train import resume

pytestmark = [
    *NEEDS_RAY,
    pytest.mark.skipif(not can_make_networks(), reason="network namespaces need root and ip"),
    pytest.mark.timeout(1800),
]
KILLS = 10
CUT_S = 30.0
GONE_S = 60.0
RUN = f"""
import json, sys, threading, warnings
warnings.simplefilter("ignore")
from cluster.rays import learner_in
from cluster.supervisors import settings
from sparring import trusted
from sparring.cluster.ray.session import connect
trusted.allow("{HEAD}:{PORT}")
kind = json.loads(sys.argv[1])
config = settings("tic_tac_toe", **kind)
learner = learner_in(connect("{HEAD}:{PORT}"), config)
supervisor, over = learner.supervisor, threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
while not over.is_set():
    report = learner.iterate(0.5)[0]
    taken, gone = supervisor.taken, supervisor.gone
    waiting = [one.batch for queue in learner.collector.queues for one in queue.pending]
    seen = dict(
        decisions=report.decisions,
        updates=learner.updates,
        restarts=supervisor.restarts,
        twice=len(taken) - len(set(taken)) + len(set(taken) & set(gone)),
        unlearned=supervisor.decisions - report.decisions,
        waiting=sum(batch is not None for batch in waiting),
        actors=sorted(supervisor.incarnations),
    )
    print(json.dumps(seen), flush=True)
learner.close()
print("{{}}", flush=True)
"""


class Run:
    """A run at the head node, with two actors."""

    def __init__(self, nodes: TwoNodes, **changes: Any) -> None:
        distributed = {"actors_per_update": 1, "timeout_s": 120.0}
        kind = {"actors": 2, "distributed": distributed, **changes}
        self.process = nodes.start(sys.executable, "-c", RUN, json.dumps(kind))
        self.updates: list[dict[str, Any]] = []

    def lines(self) -> Iterator[dict[str, Any]]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            seen = json.loads(line)
            if seen:
                self.check(seen)
                self.updates.append(seen)
                yield seen

    def until(self, what: Any) -> dict[str, Any]:
        """Read updates until something holds."""
        for seen in self.lines():
            if what(seen):
                return seen
        raise AssertionError(f"the run has ended: {self.updates[-1:]}")

    def check(self, seen: dict[str, Any]) -> None:
        """Every rollout comes once, and what was taken is learned from or waits: 64 decisions."""
        assert not seen["twice"], seen
        assert seen["unlearned"] <= 64 * seen["waiting"], seen
        if self.updates:
            assert seen["decisions"] > self.updates[-1]["decisions"]

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        list(self.lines())
        assert self.process.wait(60) == 0


@pytest.fixture
def nodes() -> Iterator[TwoNodes]:
    with TwoNodes() as nodes:
        yield nodes
        left = {address: nodes.processes(address) for address in (HEAD, SECOND)}
    assert not [pids for pids in left.values() if alive(pids)]


def alive(pids: list[int]) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=,stat=", *map(str, pids)], capture_output=True, text=True, check=False
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [int(pid) for pid, state in rows if int(pid) in pids and not state.startswith("Z")]


def test_a_second_node_that_is_killed_ten_times_costs_rollouts_in_flight(nodes: TwoNodes) -> None:
    nodes.join()
    run = Run(nodes)
    for kill in range(KILLS):
        run.until(lambda seen, kill=kill: len(seen["actors"]) == 2 + kill)
        nodes.kill(SECOND)
        run.until(lambda seen, kill=kill: seen["restarts"] > kill)
        nodes.join()
    run.until(lambda seen: len(seen["actors"]) == 2 + KILLS)
    # Ray may place an actor at a node that it does not know to be dead yet.
    assert KILLS <= run.updates[-1]["restarts"] <= 2 * KILLS
    run.end()
    wait_until_gone(nodes)


def test_a_node_that_comes_late_plays_and_one_that_is_cut_off_loses_no_training(
    nodes: TwoNodes,
) -> None:
    nodes.join()
    run = Run(nodes)
    seen = run.until(lambda seen: len({actor for actor, _ in seen["actors"]}) == 2)
    nodes.kill(SECOND)
    seen = run.until(lambda seen: seen["restarts"] == 1)
    run.until(lambda later: later["updates"] >= seen["updates"] + 20)  # one node alone goes on
    nodes.join()
    seen = run.until(lambda later: len(later["actors"]) == 3)
    nodes.cut(off=True)
    began = time.monotonic()
    run.until(lambda _: time.monotonic() - began > CUT_S)
    nodes.cut(off=False)
    before = run.updates[-1]
    after = run.until(lambda later: later["updates"] >= before["updates"] + 20)
    assert after["decisions"] > before["decisions"] > seen["decisions"]
    run.end()
    wait_until_gone(nodes)


def test_a_run_of_the_second_node_comes_back_whole_and_goes_on_here(
    nodes: TwoNodes, tmp_path: Path
) -> None:
    nodes.join()
    words = "train tic_tac_toe --updates 5 --eval.off --eval.final-games 16 --threads 1 --seeds 2"
    place = ["--cluster", f"{HEAD}:{PORT}", "--runs", str(tmp_path), "--json"]
    with nodes.start(sys.executable, "-m", "sparring", *words.split(), *place) as program:
        assert program.stdout is not None
        members = json.loads(program.stdout.read())["members"]
    assert program.returncode == 0 and len(members) == 2
    for member in members:  # a CPU at each node: one was trained at the second
        run = Path(member["run"])
        assert run.parent == tmp_path
        assert f'runs = "{tmp_path}"' in (run / "config.toml").read_text("utf-8")
        assert resume(run, updates=6, quiet=True).policy.meta["update"] == 6


def wait_until_gone(nodes: TwoNodes) -> None:
    """Wait for the end of the actors, which their nodes kill a moment after the run has ended."""
    began = time.monotonic()
    while left := nodes_workers(nodes):
        assert time.monotonic() - began < GONE_S, left


def nodes_workers(nodes: TwoNodes) -> list[str]:
    """Actors that are left at the nodes."""
    found = []
    for address in (HEAD, SECOND):
        for pid in nodes.processes(address):
            words = subprocess.run(
                ["ps", "-o", "args=", str(pid)], capture_output=True, text=True, check=False
            ).stdout
            if "ActorHost" in words:
                found.append(words)
    return found
