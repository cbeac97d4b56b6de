"""Every learner from actors: in lock-step it is the run in one process, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cluster.supervisors import together
from cluster.test_lanes import check_same, check_same_tensors, iterated
from sparring.config import TrainConfig
from sparring.learn.learner import Learner
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import merged, with_preset

SLOW = pytest.mark.slow
TINY: dict[str, Any] = {
    "net": {"hidden": (16,)},
    "collect": {"games": 8, "steps": 8},
    "eval": {"off": True},
    "tensorboard": False,
    "threads": 1,
    "device": "cpu",
}
REPLAY: dict[str, Any] = {"capacity": 4096, "batch": 16, "warmup": 100, "ratio": 1.0}
BOX: dict[str, Any] = {"net": {"hidden": (16,), "std": "predicted", "squash": True}}
RUNS: dict[str, dict[str, Any]] = {
    "dqn": {
        "replay": {**REPLAY, "prioritized": True, "n_step": 3},
        "dqn": {"epsilon": "0%:1.0,100%:0.1", "epsilon_spread": 3.0, "win_bonus": 0.5},
    },
    "qrdqn": {"replay": REPLAY, "qrdqn": {"quantiles": 8}},
    "pqn": {"algo": "dqn", "dqn": {"mode": "rollouts", "epochs": 1, "minibatch": 32}},
    "sac": {"game": "laser_hockey", "replay": REPLAY, **BOX},
    "redq": {"replay": {**REPLAY, "ratio": 2.0}},
    "td3": {
        "game": "laser_hockey",
        "replay": REPLAY,
        "net": {"hidden": (16,), "std": "shared", "squash": True},
        "td3": {"noise": "0%:0.5,100%:0.1"},
    },
    "gumbel": {
        "collect": {"games": 4, "steps": 4},
        "gumbel": {"simulations": 8, "fast_simulations": 3, "minibatch": 16, "epochs": 1},
    },
    "worlds": {
        "algo": "gumbel",
        "game": "leduc_poker",
        "collect": {"games": 4, "steps": 4},
        "gumbel": {"simulations": 8, "minibatch": 16, "epochs": 1, "eta": "0%:2,100%:1"},
        "heads": {"hidden": 0.5},
    },
    "roles": {
        "algo": "ppo",
        "game": "skull_king",
        "set": ("num_players=3", "rounds=1,2"),
        "collect": {"games": 8, "steps": 16},
        "hierarchy": {"on": True},
    },
    "hindsight": {
        "algo": "dqn",
        "game": "skull_king",
        "set": ("num_players=3", "rounds=1,2"),
        "collect": {"games": 8, "steps": 16},
        "replay": REPLAY,
        "hindsight": {"on": True},
    },
}
"""Settings of runs with every learner."""
QUICK = ("dqn", "sac", "gumbel", "roles")


def config_of(name: str, **changes: Any) -> TrainConfig:
    run = {"algo": name, "game": "tic_tac_toe", **RUNS[name]}
    mode, by_role = run.get("dqn", {}).get("mode", ""), "hierarchy" in run
    base = with_preset(run.pop("game"), algo=run["algo"], mode=mode, hierarchy=by_role)
    config: TrainConfig = merged(merged(base, TINY, "test"), {**run, **changes}, "test")
    return config


def in_one_process(config: TrainConfig) -> Learner:
    one = replace(config, actors=0)
    return make_learner(one, resolve([one]))


@pytest.mark.parametrize("actors", [1, pytest.param(2, marks=SLOW)])
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=SLOW) for name in RUNS]
)
def test_in_lockstep_every_learner_gets_what_it_would_have_collected(
    name: str, actors: int
) -> None:
    config = config_of(name, actors=actors, distributed={"lockstep": True})
    one, distributed, again = in_one_process(config), together(config), together(config)
    for mine, theirs in zip(iterated(one), iterated(distributed), strict=True):
        check_same(mine, theirs)
    saved = distributed.snapshot()
    check_same_tensors(one.snapshot(), saved)
    again.restore(saved)
    check_same(distributed.iterate(0.5)[0], again.iterate(0.5)[0])
    check_same_tensors(distributed.snapshot(), again.snapshot())
