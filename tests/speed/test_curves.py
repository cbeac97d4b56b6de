"""How fast a run is, from its curves; what a GPU does, from what ran on it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from sparring.speed.curves import BETWEEN, CurveReader
from sparring.speed.kernels import Launch, kind_of, our_kernels, summarize
from sparring.training.records import metrics
from sparring.training.records.metrics import MetricsWriter


def test_the_pace_is_that_of_the_updates_within(tmp_path: Path) -> None:
    """Ten updates of a second: 100 decisions each, from the sixth on 200, a tenth in between."""
    decisions = 0
    with MetricsWriter(tmp_path, tensorboard=False) as out:
        for update in range(1, 11):
            made = 100 if update <= 5 else 200
            decisions += made
            values = {"charts/decisions": float(decisions), "charts/SPS": made / 0.9}
            values |= {"charts/samples_per_s": 2 * made / 0.9, "phases/update": 0.75}
            values |= {"phases/stepping": 0.25}
            out.add(update, values, seconds=float(update))
    progress = CurveReader(tmp_path)
    assert progress.last_update() == 10
    now = time.monotonic()  # the last update ended just now, as far as anybody knows
    late = progress.speed(now - 4.5, now + 1)
    assert late.updates == 5
    assert late.decisions_per_s == pytest.approx(200)
    assert late.samples_per_s == pytest.approx(400)
    assert dict(late.phases) == {
        "update": pytest.approx(0.675),
        "stepping": pytest.approx(0.225),
        BETWEEN: pytest.approx(0.1),
    }
    early = progress.speed(now - 8.5, now - 4.5)
    assert early.updates == 4
    assert early.decisions_per_s == pytest.approx(100)
    assert progress.speed(now + 5, now + 9).updates == 0


def test_of_a_long_run_only_what_is_asked_for_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking must not cost what training needs: a run of days has millions of numbers."""
    with MetricsWriter(tmp_path, tensorboard=False) as out:
        for update in range(1, 1001):
            values = {"charts/decisions": 10.0 * update, "charts/SPS": 10.0, "phases/update": 1.0}
            out.add(update, values, seconds=float(update))
    asked: list[int] = []
    ask = metrics.query_curves

    def counting(*words: Any, **named: Any) -> Any:
        rows = ask(*words, **named)
        asked.append(sum(len(updates) for updates, _, _ in rows.values()))
        return rows

    monkeypatch.setattr(metrics, "query_curves", counting)
    progress = CurveReader(tmp_path)
    assert progress.last_update() == 1000
    assert asked == [1]
    now = time.monotonic()
    pace = progress.speed(now - 4.5, now + 1)
    assert pace.updates == 5
    assert pace.decisions_per_s == pytest.approx(10)
    assert asked[1:] == [1000, 15]


def test_a_run_without_curves_has_no_pace(tmp_path: Path) -> None:
    progress = CurveReader(tmp_path)
    assert progress.last_update() == 0
    assert progress.speed(0.0, time.monotonic()).updates == 0


def test_kernels_add_up_to_the_time() -> None:
    """What runs at the same time counts once; the rest is idle."""
    launches = [
        Launch("sm90_xmma_gemm_f32", 0.0, 300_000.0),
        Launch("sm90_xmma_gemm_f32", 400_000.0, 500_000.0),
        Launch("step", 450_000.0, 600_000.0),
        Launch("Memcpy DtoH (Device -> Pageable)", 700_000.0, 750_000.0),
    ]
    found = summarize(launches, 1.0)
    assert found.shares == {
        "products": pytest.approx(0.4),
        "games": pytest.approx(0.1),
        "copies": pytest.approx(0.05),
        "idle": pytest.approx(0.45),
    }
    assert (found.kernels[0].name, found.kernels[0].launches) == ("sm90_xmma_gemm_f32", 2)
    assert sum(found.shares.values()) == pytest.approx(1)


def test_our_own_kernels_are_known_by_name() -> None:
    """Their names are read from the sources, so that none is forgotten."""
    assert our_kernels()["step"] == our_kernels()["open_rows"] == "games"
    assert our_kernels()["adam"] == "optimizer"
    assert our_kernels()["advance_search"] == our_kernels()["begin_search"] == "trees"
    assert our_kernels()["grouped_product"] == "products"
    assert kind_of("void at::native::vectorized_elementwise_kernel<4>") == "elementwise"
    assert kind_of("multi_tensor_apply_kernel") == "optimizer"
