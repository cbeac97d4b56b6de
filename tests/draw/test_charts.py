"""Charts show the numbers that they were given."""

from __future__ import annotations

import io
import math
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sparring.draw.charts.axes import Axis, AxisMark, label, ticks
from sparring.draw.charts.chart import Chart, EstimateBar, EstimateChart, Series
from sparring.draw.charts.curves import (
    MAX_POINTS,
    color_of,
    make_charts,
    make_common_charts,
    short_names,
)
from sparring.draw.charts.page import COLORS, SUFFIXES, ChartPage, render
from sparring.errors import SparringError

PHASES = {"stepping": 0.2, "inference": 0.3, "transfer": 0.1, "advantage": 0.1, "update": 0.3}


def draw_png(page: ChartPage) -> bytes:
    return render(page, ".png")


def draw_html(page: ChartPage) -> str:
    return render(page, ".html").decode()


def line_chart(**more: Any) -> Chart:
    line = Series("a $b$ <c>", 0, np.arange(3.0), np.array([0.2, np.nan, 0.4]))
    return Chart("a chart", (line,), **more)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_without_matplotlib_the_error_says_what_to_do(
    suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SparringError, match=r"charts need matplotlib: pip install 'sparring\[plot"):
        render(ChartPage("run", (), ()), suffix)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".html", b"<!doctype html>")],
)
def test_the_same_numbers_make_the_same_bytes(suffix: str, start: bytes) -> None:
    page = ChartPage("run", ("a fact",), (line_chart(wide=True),), Axis("minutes", 2.0))
    first = render(page, suffix)
    assert first.startswith(start)
    assert render(page, suffix) == first
    assert not re.search(rb"20\d\d-\d\d-\d\d|CreationDate", first)


def test_what_a_user_set_for_other_charts_changes_nothing() -> None:
    import matplotlib

    page = ChartPage("run", (), (line_chart(),))
    usual = draw_png(page)
    with matplotlib.rc_context({"lines.linewidth": 20, "font.size": 30, "axes.grid": True}):
        assert draw_png(page) == usual
        assert matplotlib.rcParams["font.size"] == 30


def test_no_window_is_opened() -> None:
    """Neither pyplot nor a backend with windows is loaded."""
    asked = """
import sys
from sparring.draw.charts.page import ChartPage, render
assert "matplotlib" not in sys.modules
for suffix in (".png", ".svg", ".pdf", ".html"):
    render(ChartPage("x", (), ()), suffix)
sys.exit("matplotlib.pyplot" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0


def test_a_line_is_where_its_numbers_are() -> None:
    """A half-way value is drawn half way up, at its minute."""
    line = Series("x", 0, np.array([0.0, 10.0]), np.array([0.5, 0.5]))
    chart = Chart("a chart", (line,), "percent", wide=True, span=(0.0, 1.0))
    with Image.open(
        io.BytesIO(draw_png(ChartPage("run", (), (chart,), Axis("minutes", 10.0))))
    ) as image:
        blue = np.all(np.array(image.convert("RGB")) == [0x25, 0x63, 0xEB], axis=2)
    rows, columns = np.nonzero(blue[170:])
    assert np.ptp(rows) < 8
    top, bottom = 110 + 54, 110 + 460 - 38
    assert abs(rows.mean() + 170 - (top + bottom) / 2) < 2
    assert np.ptp(columns) > 1400


def test_phases_are_lines_where_they_begin_named_in_the_first_chart() -> None:
    line = Series("x", 0, np.array([0.0, 10.0]), np.array([0.1, 0.1]))
    first = Chart("first", (line,), "percent", wide=True, span=(0.0, 1.0))
    other = Chart("other", (line,), "percent", wide=True, span=(0.0, 1.0))
    marks = (
        AxisMark(0.0, "1 easy"),
        AxisMark(5.0, "2 a <hard> one"),
        AxisMark(9.999, "3 nowhere to be named"),
    )
    page = ChartPage("run", (), (first, other), Axis("minutes", 10.0), marks)
    with Image.open(io.BytesIO(draw_png(page))) as image:
        marked = np.array(image.convert("RGB")).astype(int)
    with Image.open(io.BytesIO(draw_png(replace(page, marks=())))) as image:
        plain = np.array(image.convert("RGB")).astype(int)
    changed = np.abs(marked - plain).max(axis=2) > 40
    for top in (110, 110 + 460 + 20):
        columns = np.flatnonzero(changed[top + 120 : top + 400].any(axis=0))
        middle = 106 + (1536 - 106) * 0.5
        assert set(columns[columns < 1500]) <= set(range(int(middle) - 2, int(middle) + 3))
        assert len(columns[columns < 1500])
    html = draw_html(page)
    assert html.count("1 easy") == 1
    assert html.count("2 a &lt;hard&gt; one") == 1
    assert "nowhere" not in html


def test_what_a_curriculum_changes_is_drawn() -> None:
    at = np.arange(3), np.arange(3.0)
    curves = {
        "curriculum/reward/closeness": (*at, np.array([20.0, 20.0, 1.5])),
        "curriculum/reward/touch": (*at, np.array([1.0, 1.0, 1.0])),
        "curriculum/opponents/weak": (*at, np.array([1.0, 0.5, 0.2])),
        "charts/phase": (*at, np.array([1.0, 1.0, 2.0])),
    }
    drawn = {chart.title: chart for chart in make_charts(curves)}
    assert [s.name for s in drawn["Reward weights"].series] == ["closeness", "touch"]
    assert drawn["Share of games per opponent"].form == "percent"
    common = make_common_charts({"a": curves, "b": curves})
    assert [chart.title for chart in common] == ["Phase of the curriculum"]


def test_long_runs_are_thinned_out_by_means() -> None:
    updates = np.arange(10_000)
    values = np.where(updates % 2, 1.0, 3.0)
    values[5000] = 1e9
    (chart,) = make_charts({"losses/value_loss": (updates, updates * 1.0, values)})
    (line,) = chart.series
    assert len(line.values) == MAX_POINTS
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


def test_the_share_of_the_machine_is_drawn_from_zero() -> None:
    updates = np.arange(5)
    curve = (updates, updates * 1.0, np.linspace(0.2, 0.3, 5))
    (chart,) = make_charts({"charts/machine_share": curve})
    assert (chart.title, chart.form, chart.from_zero) == ("Share of this machine", "percent", True)
    np.testing.assert_allclose(chart.series[0].values, curve[2])


def test_axes_have_round_numbers() -> None:
    assert ticks(0, 1, 5) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(-37, 112, 4) == [0, 50, 100]
    assert ticks(0.0, 7.99, 5) == [0, 2, 4, 6]
    assert [label(x, "percent", 0.2) for x in (0.0, 0.2)] == ["0%", "20%"]
    assert [label(x, "rate") for x in (950.0, 41_234.0, 4.1e6)] == ["950", "41.2k", "4.1M"]
    assert [label(x, "number", 0.005) for x in (0.01, 0.015)] == ["0.010", "0.015"]
    assert label(math.nan, "percent") == "–"


def test_many_lines_can_be_told_apart() -> None:
    """Seven colors, then the same ones dashed, and a run keeps its look in every chart."""
    looks = [color_of(at) for at in range(14)]
    assert len(set(looks)) == 14
    updates = np.arange(1, 4)
    curve = (updates, updates * 1.0, updates * 1.0)
    runs = {f"r{at}": {"eval/strength": curve} for at in range(8)}
    runs["r7"]["losses/value_loss"] = curve
    strength, loss = make_common_charts(runs)
    assert [line.dashed for line in strength.series] == [False] * 7 + [True]
    assert (strength.series[-1].color, strength.named) == (loss.series[0].color, True)
    assert not loss.named
    with Image.open(io.BytesIO(draw_png(ChartPage("x", (), (strength,), Axis("updates", 3))))):
        pass


def test_colors_stay_apart_for_eyes_without_red_or_green() -> None:
    """Machado's matrices for people who lack a cone; differences as CIE 1976 has them."""
    sight = (
        np.eye(3),
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    )
    rgb = np.array([[int(c[at : at + 2], 16) for at in (1, 3, 5)] for c in COLORS]) / 255
    light = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    for eyes in sight:
        xyz = np.clip(light @ np.array(eyes).T, 0, 1) @ to_xyz.T / [0.9505, 1.0, 1.089]
        f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
        lab = np.stack(
            [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1
        )
        apart = np.linalg.norm(lab[:, None] - lab[None], axis=2)
        assert apart[np.triu_indices(len(COLORS), 1)].min() > 20


def test_names_lose_what_all_of_them_begin_with() -> None:
    assert short_names(["a-ppo-1-x", "a-ppo-2-y"]) == ["1-x", "2-y"]
    assert short_names(["a-1", "a-1-2"]) == ["1", "1-2"]
    assert short_names(["alone-1"]) == ["alone-1"]


def test_estimates_span_their_intervals_and_are_cut_to_their_place() -> None:
    rows = (EstimateBar("A " + "long " * 30, 0, 0.5, 0.4, 0.6, (0.3,)), EstimateBar("B", 1, 0.9))
    chart = EstimateChart("Strength", rows, "percent", guide=0.5)
    low, high = chart.x_range
    assert low < 0.3 < 0.9 < high <= 1
    assert rows[0].shown("percent") == "50.0% (40.0% .. 60.0%)"
    assert rows[1].shown("percent") == "90.0%"
    page = ChartPage("x", (), (chart,), Axis("minutes", 1.0))
    with Image.open(io.BytesIO(draw_png(page))) as image:
        pixels = np.array(image.convert("RGB"))
    ink = np.all(pixels == [0x5D, 0x65, 0x72], axis=2)
    assert ink[:, 40 + 493 :].sum() == 0  # nothing beside the card
    assert "A long long" in draw_html(page)


def test_the_guide_is_named_where_no_line_passes() -> None:
    x, axis = np.linspace(0, 10, 11), Axis("minutes", 10.0)
    for values, left in ((np.linspace(0.2, 0.9, 11), False), (np.linspace(0.9, 0.27, 11), True)):
        chart = Chart("c", (Series("s", 0, x, values),), "percent", span=(0.0, 1.0), guide=0.25)
        assert chart.guide_on_left(axis) == left


@pytest.mark.parametrize("values", [[1e9, 1e9 + 1e-7], [0.0, 1e-300], [math.nan], [-1e300, 1e300]])
def test_odd_numbers_are_drawn(values: list[float]) -> None:
    line = Series("s", 0, np.arange(len(values), dtype=float), np.array(values))
    rows = tuple(EstimateBar("r", 0, value) for value in values)
    assert draw_html(ChartPage("x", (), (Chart("c", (line,)), EstimateChart("e", rows))))


def test_places_with_names_stand_at_equal_distances() -> None:
    axis = Axis("games", 3, ("64", "256", "1,024"))
    assert axis.ticks == [(0.5, "64"), (1.5, "256"), (2.5, "1,024")]
    assert axis.caption == "games"
    line = Series("1 thread", 0, np.array([0.5, 1.5, 2.5]), np.array([1.0, 2.0, 3.0]))
    page = ChartPage("speed", (), (Chart("decisions/s", (line,), "rate"),), axis)
    html = draw_html(page)
    assert all(f">{name}</text>" in html for name in axis.names)
    assert '"names":["64","256","1,024"]' in html
    assert draw_png(page)[:4] == b"\x89PNG"
