"""Hindsight on a GPU: the records of its games, and what learners say that they saw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparring.config import TrainConfig
from sparring.pools import Lineup, Pool
from sparring.pools.cuda import CudaPool
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import merged

TINY: dict[str, Any] = {
    "device": "cuda",
    "collect": {"games": 64, "steps": 48},
    "net": {"hidden": (32,)},
    "set": ("rounds=2,3",),
    "eval": {"off": True},
}


@pytest.mark.parametrize("config", [{}, {"num_players": 2, "skip_forced": 1}])
def test_records_are_those_of_the_cpu(config: dict[str, Any]) -> None:
    seats = config.get("num_players", 4)
    options = {
        "seed": 3,
        "config": config,
        "lineups": [Lineup((0, *["random"] * (seats - 1)))],
        "records": True,
    }
    cpu, gpu = Pool("skull_king", 64, threads=1, **options), CudaPool("skull_king", 64, **options)
    there, here = gpu.reset(), cpu.reset()
    settled = 0
    for _ in range(150):
        action = cpu.sample_actions().copy()
        cpu.step(action)
        gpu.step(action)
        assert there.record is not None
        assert np.array_equal(there.record.cpu().numpy().view(np.uint32), here.record)
        settled += int((here.record != 0).sum())
    assert settled > 100


@pytest.mark.parametrize("hierarchy", [False, True])
def test_a_learner_says_what_it_saw(hierarchy: bool) -> None:
    changes = {**TINY, "hierarchy": {"on": hierarchy}, "hindsight": {"on": True, "share": 1.0}}
    config = merged(TrainConfig(game="skull_king"), changes, "test")
    plan = resolve([config])
    assert plan.fused
    (report,) = make_learner(config, plan).iterate(0.0)
    for role in ("/manager", "/worker") if hierarchy else ("",):
        assert report.stats[f"losses/hindsight{role}"] > 0
        assert report.stats[f"learning/examples{role}"] > 0


def test_dqn_in_hindsight_goes_on_step_by_step() -> None:
    changes = {**TINY, "algo": "dqn", "hindsight": {"on": True}}
    config = merged(TrainConfig(game="skull_king"), changes, "test")
    with pytest.warns(UserWarning, match="hindsight.on of a replay has no graphs"):
        plan = resolve([config])
    assert not plan.fused
    make_learner(config, plan).iterate(0.0)
