"""What a GPU can do is measured there, and the share of a fused run is below all of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from sparring.speed.rounds import fill_slots
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of
from sparring.training.planning.training import run_plan
from sparring.training.train import complete
from sparring.training.utilization.cache import MeasurementCache
from sparring.training.utilization.minibatch import sizes_to_time
from sparring.training.utilization.monitor import make_monitor, measured_run
from sparring.training.utilization.peaks import ComputeDevice, measure_peaks


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARRING_CACHE", str(tmp_path / "cache"))


def test_a_gpu_is_faster_in_bf16_and_than_its_cpu() -> None:
    gpu, cpu = (
        measure_peaks(ComputeDevice(device, 1), MeasurementCache()) for device in ("cuda", "cpu")
    )
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
    lines: list[str] = []
    run = measured_run(run_plan(config), plan, learner)
    monitor = make_monitor(run, measure=True, echo=lines.append)
    assert lines
    assert monitor.peaks is not None
    if config.algo == "ppo" and not plan.roles:
        assert monitor.timings is not None
        assert {size for size, _, _ in monitor.timings.ratios} in (set(sizes_to_time(plan)), set())
    for _ in range(4):
        started = time.perf_counter()
        reports = learner.iterate(0.0)
        utilization = monitor.add_update(
            reports, time.perf_counter() - started, learner.phases.take()
        )
    assert utilization is not None
    assert 0 < utilization.share <= 1
    assert "of this machine" in utilization.line
