"""What a GPU can do is measured there, and the share of a fused run is below all of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from sparring.speed.rounds import fill_slots
from sparring.training.meter.ceilings import Place, measure_machine
from sparring.training.meter.kept import Kept
from sparring.training.meter.meter import meter_of, subject_of
from sparring.training.meter.minibatch import sizes_of
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of
from sparring.training.planning.training import run_plan
from sparring.training.train import complete


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARRING_CACHE", str(tmp_path / "cache"))


def test_a_gpu_is_faster_in_bf16_and_than_its_cpu() -> None:
    gpu, cpu = (measure_machine(Place(device, 1), Kept()) for device in ("cuda", "cpu"))
    assert gpu["bf16"] > gpu["float32"] > cpu["float32"]
    assert gpu["memory"] > cpu["memory"]


@pytest.mark.parametrize(
    "changes",
    [
        {"game": "skull_king"},
        {"game": "skull_king", "pool": "cpu"},
        {"game": "skull_king", "population": 2},
        {"game": "skull_king", "hierarchy": {"on": True}},
        {"game": "skull_king", "opponents": ("self=1", "self,self,past,past=1")},
        {"game": "shogi", "net": {"channels": 16, "blocks": 2}},
        {"game": "tic_tac_toe", "algo": "dqn"},
        {"game": "laser_hockey", "algo": "sac"},
    ],
    ids=str,
)
def test_a_fused_run_has_a_share(changes: dict[str, Any]) -> None:
    changes = {"device": "cuda", **changes}
    config = complete(str(changes.pop("game")), "", {**changes, "collect": {"games": 256}})
    plan = resolve(members_of(config))
    learner: Any = make_learner(config, plan)
    if plan.participants.slots:
        fill_slots(learner, plan)
    told: list[str] = []
    meter = meter_of(subject_of(run_plan(config), plan, learner), measure=True, echo=told.append)
    assert told
    assert meter.ceilings is not None
    if config.algo == "ppo" and not plan.roles:
        assert meter.pace is not None
        assert {size for size, _, _ in meter.pace.ratios} in (set(sizes_of(plan)), set())
    for _ in range(4):
        started = time.perf_counter()
        reports = learner.iterate(0.0)
        reached = meter.look(reports, time.perf_counter() - started, learner.phases.take())
    assert reached is not None
    assert 0 < reached.share <= 1
    assert "of this machine" in reached.line
