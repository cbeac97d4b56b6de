"""Every metric that a run logs has a description, which the page of metrics shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sparring
from sparring.training.records import metrics
from sparring.training.records.descriptions import GROUPS, METRICS, describe

REPLAY = {"replay": {"warmup": 32, "batch": 16, "capacity": 1000}}
RUNS: dict[str, dict[str, Any]] = {
    "ppo": {"ppo": {"magnet": 0.1}, "heads": {"wdl": 1.0, "score": 1.0}},
    "roles": {"game": "skull_king", "hierarchy": True},
    "dqn": {"algo": "dqn", **REPLAY},
    "rollouts": {"algo": "dqn", "dqn": {"mode": "rollouts"}},
    "qrdqn": {"algo": "qrdqn", **REPLAY},
    "sac": {"algo": "sac", **REPLAY},
    "redq": {"algo": "redq", "game": "laser_hockey", **REPLAY, "net": {"hidden": (16, 16)}},
    "td3": {"algo": "td3", "game": "laser_hockey", **REPLAY, "net": {"hidden": (16, 16)}},
    "gumbel": {"algo": "gumbel", "gumbel": {"simulations": 2, "fast_simulations": 1}},
    "league": {"opponents": ("self=1", "past=1"), "league": {"every_decisions": 64}},
}


@pytest.mark.parametrize("name", RUNS)
def test_every_metric_of_a_run_has_a_description(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"game": "tic_tac_toe", "collect": {"games": 4, "steps": 8}, **RUNS[name]}
    if "replay" in settings:
        settings["replay"] = {**settings["replay"], "ratio": 1.0}
    usual = {"eval": {"off": True}, "tensorboard": False, "threads": 1, "device": "cpu"}
    agent = sparring.train(updates=2, quiet=True, **usual, **settings)
    logged = metrics.read(agent.run)
    assert len(logged) > 15
    assert [one for one in logged if not describe(one)] == []


def test_a_role_and_an_opponent_are_part_of_a_name() -> None:
    assert describe("losses/entropy/manager") == METRICS["losses"]["entropy"]
    assert describe("eval/my-runs/first/12/low") == METRICS["eval"]["*/low"]
    assert describe("eval/previous best/win")
    assert describe("mine/half") == "" == describe("losses/calm")
    assert set(GROUPS) == set(METRICS)
