"""Decisions per second with actors, against the same run in one process, one after the other.

python benchmarks/actors.py [--algo ppo] [--games 16] [--steps 32] [--seconds 8] [--actors 1 2 4]
    [--cluster HOST:PORT] [GAME]
python benchmarks/actors.py --nodes [--rounds 3] [--json FILE] [GAME]

GAME: a game, or module:factory of an environment; tests/own_envs.py has some with slow steps.
--nodes: actors on one and on two nodes of Ray in turn, each in a network of its own on this machine
(as root, with PYTHONPATH=tests); the nodes share its cores, so that only games that wait gain.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparring import trusted
from sparring.config import TrainConfig
from sparring.factories import is_factory
from sparring.learn.learner import Learner, closing_learner
from sparring.machine import machine_info
from sparring.pools.custom.make import env_info
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import merged, with_preset

SHOWN = ("distributed/lag_mean", "distributed/actor_idle", "distributed/learner_idle")


def measured(learner: Learner, seconds: float) -> dict[str, float]:
    """Train for a while; updates until all actors are there, and two more, are not counted."""
    supervisor: Any = learner.supervisor  # type: ignore[attr-defined]
    while not all(map(supervisor.is_ready, range(supervisor.size))):
        learner.iterate(0.0)
    reports = [learner.iterate(0.0)[0] for _ in range(2)]
    before, began, found = reports[-1].decisions, time.perf_counter(), []
    while (took := time.perf_counter() - began) < seconds:
        found.append(learner.iterate(0.0)[0])
    rate = (found[-1].decisions - before) / took
    shown = {name: sum(one.stats[name] for one in found) / len(found) for name in SHOWN}
    return {"decisions_per_s": rate, **shown}


def plain(learner: Learner, seconds: float) -> dict[str, float]:
    """The same of a run without actors."""
    before = [learner.iterate(0.0)[0] for _ in range(2)][-1].decisions
    began, now = time.perf_counter(), before
    while (took := time.perf_counter() - began) < seconds:
        now = learner.iterate(0.0)[0].decisions
    return {"decisions_per_s": (now - before) / took}


def actors_by_node(learner: Any) -> dict[str, list[int]]:
    """How many actors each node has: Ray spreads them as it likes."""
    from ray._private import state  # Ray has no public function without its dashboard

    actors = [handle.actor._actor_id.hex() for handle in learner.supervisor._handles]
    nodes = [state.actors(one)["Address"]["NodeID"] for one in actors]
    return {"actors_by_node": sorted(nodes.count(node) for node in set(nodes))}


def on_nodes(asked: argparse.Namespace) -> None:
    """Measure actors on one and on two nodes in turn; print ratios, write a file."""
    from cluster.nodes import HEAD, PORT, SECOND, TwoNodes

    words = [sys.executable, __file__, asked.game, "--cluster", f"{HEAD}:{PORT}", "--actors"]
    words += [*map(str, asked.actors), "--seconds", str(asked.seconds)]
    found: list[dict[str, Any]] = []
    with TwoNodes(cpus=max(asked.actors)) as nodes:
        for number in range(asked.rounds):
            for count in (1, 2) if number % 2 == 0 else (2, 1):
                if count == 2:
                    nodes.join()
                with nodes.start(*words) as program:
                    assert program.stdout is not None
                    for line in program.stdout:
                        row = {"round": number, "nodes": count, **json.loads(line)}
                        print(json.dumps(row), flush=True)
                        found.append(row)
                if count == 2:
                    nodes.kill(SECOND)
    table = []
    for count, actors in itertools.product((1, 2), asked.actors):
        ratios = [
            row["times one process"]
            for row in found
            if row["nodes"] == count and row.get("actors") == actors
        ]
        table.append({"nodes": count, "actors": actors, "times_one_process": ratios})
        print(f"{count} nodes, {actors} actors: {statistics.median(ratios):.2f} {ratios}")
    if asked.json:
        facts = {"machine": machine_info(), "game": asked.game, "rows": found, "table": table}
        asked.json.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


def main() -> None:
    """Measure and print one JSON line for every kind."""
    read = argparse.ArgumentParser()
    read.add_argument("game", nargs="?", default="tic_tac_toe")
    read.add_argument("--algo", default="ppo")
    read.add_argument("--games", type=int, default=16)
    read.add_argument("--steps", type=int, default=32)
    read.add_argument("--seconds", type=float, default=8.0)
    read.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4])
    read.add_argument("--cluster", default="")
    read.add_argument("--nodes", action="store_true")
    read.add_argument("--rounds", type=int, default=3)
    read.add_argument("--json", type=Path)
    asked = read.parse_args()
    if asked.nodes:
        on_nodes(asked)
        return
    settings: dict[str, Any] = {
        "game": asked.game,
        "algo": asked.algo,
        "net": {"hidden": (64, 64)},
        "collect": {"games": asked.games, "steps": asked.steps},
        **({"ppo": {"epochs": 4, "minibatch": 128}} if asked.algo == "ppo" else {}),
        "eval": {"off": True},
        "threads": 1,
        "device": "cpu",
    }
    if is_factory(asked.game):
        trusted.allow(asked.game)  # and in actors, by the environment
        os.environ |= trusted.environment()
    own = env_info(asked.game) if is_factory(asked.game) else None
    preset = with_preset("" if own else asked.game, algo=asked.algo, facts=own)
    usual = TrainConfig() if asked.algo == "ppo" else preset
    config: TrainConfig = merged(usual, settings, "benchmark")
    alone = plain(make_learner(config, resolve([config])), asked.seconds)
    print(json.dumps({"kind": "one process", **alone}), flush=True)
    if asked.cluster:
        trusted.allow(asked.cluster)
    for actors in asked.actors:
        for lockstep in (False,) if asked.cluster else (True, False):
            distributed = replace(config.distributed, lockstep=lockstep)
            many = replace(config, actors=actors, distributed=distributed, cluster=asked.cluster)
            learner = make_learner(many, resolve([many]))
            with closing_learner(learner):
                found = measured(learner, asked.seconds)
                by_node = actors_by_node(learner) if asked.cluster else {}
            found["times one process"] = found["decisions_per_s"] / alone["decisions_per_s"]
            kind = f"{actors} actors, {'lock-step' if lockstep else 'asynchronous'}"
            print(json.dumps({"kind": kind, "actors": actors, **found, **by_node}), flush=True)


if __name__ == "__main__":
    main()
