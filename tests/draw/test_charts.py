"""Charts show the numbers that they were given."""

from __future__ import annotations

import io
import math
import sys

import numpy as np
import pytest
from PIL import Image

from sparring.draw.charts import curves as charts
from sparring.draw.charts.axes import Axis, label, ticks
from sparring.draw.charts.curves import Chart, Series, make_charts, pieces
from sparring.draw.charts.png import draw_png
from sparring.errors import SparringError

PHASES = {"stepping": 0.2, "inference": 0.3, "transfer": 0.1, "advantage": 0.1, "update": 0.3}


def test_without_pillow_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(SparringError, match=r"pip install 'pillow>=10\.1'"):
        draw_png(charts.Page("run", (), (), Axis("minutes", 1.0)))


def test_a_line_is_where_its_numbers_are() -> None:
    """A half-way value is drawn half way up, at its minute."""
    line = Series("x", 0, np.array([0.0, 10.0]), np.array([0.5, 0.5]))
    chart = Chart("a chart", (line,), "percent", wide=True, span=(0.0, 1.0))
    with Image.open(io.BytesIO(draw_png(charts.Page("run", (), (chart,), Axis("minutes", 10.0))))) as image:
        blue = np.all(np.array(image) == [0x25, 0x63, 0xEB], axis=2)
    rows, columns = np.nonzero(blue[170:])
    assert np.ptp(rows) < 8
    top, bottom = 110 + 54, 110 + 460 - 38
    assert abs(rows.mean() + 170 - (top + bottom) / 2) < 2
    assert np.ptp(columns) > 1400


def test_long_runs_are_thinned_out_by_means() -> None:
    updates = np.arange(10_000)
    values = np.where(updates % 2, 1.0, 3.0)
    values[5000] = 1e9
    (chart,) = make_charts({"losses/value_loss": (updates, updates * 1.0, values)})
    (line,) = chart.series
    assert len(line.values) == charts.MOST_POINTS
    assert np.median(line.values) == pytest.approx(2.0, abs=0.05)
    assert line.low is not None
    assert line.high is not None
    assert (line.low.min(), np.median(line.high), line.high.max()) == (1.0, 3.0, 1e9)


def test_phases_are_shares_whatever_their_unit() -> None:
    updates = np.arange(5)
    curves = {
        f"phases/{name}": (updates, updates * 1.0, np.full(5, 8 * value))
        for name, value in PHASES.items()
    }
    (chart,) = make_charts(curves)
    assert [series.name for series in chart.series] == list(PHASES)
    for series, share in zip(chart.series, PHASES.values(), strict=True):
        np.testing.assert_allclose(series.values, share)
    np.testing.assert_allclose(chart.series[-1].high, 1.0)


def test_axes_have_round_numbers() -> None:
    assert ticks(0, 1, 5) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(-37, 112, 4) == [0, 50, 100]
    assert ticks(0.0, 7.99, 5) == [0, 2, 4, 6]
    assert [label(x, "percent", 0.2) for x in (0.0, 0.2)] == ["0%", "20%"]
    assert [label(x, "rate") for x in (950.0, 41_234.0, 4.1e6)] == ["950", "41.2k", "4.1M"]
    assert [label(x, "number", 0.005) for x in (0.01, 0.015)] == ["0.010", "0.015"]
    assert label(math.nan, "percent") == "–"
    gaps = np.array([1, math.nan, 2, 3, math.nan])
    assert pieces(gaps) == [slice(0, 1), slice(2, 4)]
