"""Decisions per second with actors, against the same run in one process, one after the other.

python benchmarks/actors.py [--algo ppo] [--games 16] [--steps 32] [--seconds 8] [--actors 1 2 4]
    [GAME]

GAME: a game, or module:factory of an environment; tests/own_envs.py has some with slow steps.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import replace
from typing import Any

from sparring import trusted
from sparring.config import TrainConfig
from sparring.factories import is_factory
from sparring.learn.learner import Learner, closing_learner
from sparring.pools.custom.make import env_info
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import merged, with_preset

SHOWN = ("distributed/lag_mean", "distributed/actor_idle", "distributed/learner_idle")


def measured(learner: Learner, seconds: float) -> dict[str, float]:
    """Train for a while; the first two updates are not counted."""
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


def main() -> None:
    """Measure and print one JSON line for every kind."""
    read = argparse.ArgumentParser()
    read.add_argument("game", nargs="?", default="tic_tac_toe")
    read.add_argument("--algo", default="ppo")
    read.add_argument("--games", type=int, default=16)
    read.add_argument("--steps", type=int, default=32)
    read.add_argument("--seconds", type=float, default=8.0)
    read.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4])
    asked = read.parse_args()
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
    for actors in asked.actors:
        for lockstep in (True, False):
            distributed = replace(config.distributed, lockstep=lockstep)
            many = replace(config, actors=actors, distributed=distributed)
            learner = make_learner(many, resolve([many]))
            with closing_learner(learner):
                found = measured(learner, asked.seconds)
            found["times one process"] = found["decisions_per_s"] / alone["decisions_per_s"]
            kind = f"{actors} actors, {'lock-step' if lockstep else 'asynchronous'}"
            print(json.dumps({"kind": kind, **found}), flush=True)


if __name__ == "__main__":
    main()
