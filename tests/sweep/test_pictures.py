"""The pictures of a sweep show what was tried, whatever came of it."""

from __future__ import annotations

import io
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sparring.draw.charts.page import MARGIN, Area, ChartPage, fixed_style, new_figure, render
from sparring.sweep.chart_data import make_chart_data
from sparring.sweep.charts import PAGE, WIDTH, SweepChart, draw_sweep, make_charts
from sparring.sweep.space import SearchRange, read_ranges
from sparring.sweep.trials import DONE, FAILED, PRUNED, RUNNING, Trial

TWO = read_ranges(
    {
        "ppo.lr": {"low": 1e-4, "high": 1e-2, "log": True},
        "net.hidden": [[32], [64, 64]],
    },
    "test",
)
ORDER = read_ranges({"set.order": {"permutation": [0, 1, 2, 3, 4]}}, "test")


def trial(number: int, state: str, value: float | None, **settings: Any) -> Trial:
    given = {"ppo.lr": 1e-3, "net.hidden": [32], **settings}
    low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
    return Trial(number, given, state, value, low, high)


TRIALS = [
    trial(0, DONE, 0.5),
    trial(1, PRUNED, 0.9, **{"ppo.lr": 1e-4}),
    trial(2, DONE, 0.7, **{"net.hidden": [64, 64]}),
    trial(3, FAILED, None),
    trial(4, RUNNING, None),
    trial(5, DONE, 0.6, **{"ppo.lr": 1e-2}),
]


def size_of(file: Path) -> tuple[int, int]:
    return Image.open(io.BytesIO(file.read_bytes())).size


def figure_of(sheet: SweepChart) -> Any:
    figure = new_figure(WIDTH - 2 * MARGIN, sheet.height, "none")
    with fixed_style():
        sheet.draw(Area(figure, 0, 0, WIDTH - 2 * MARGIN, sheet.height), ChartPage("", (), ()))
    return figure


def told_of(sheet: SweepChart) -> dict[str, list[Any]]:
    """The lines of which the pointer says something, by trial."""
    found: dict[str, list[Any]] = {}
    for axes in figure_of(sheet).axes:
        for line in axes.lines:
            if line.get_gid():
                name = line.get_gid().removeprefix("tooltip ").partition(":")[0]
                found.setdefault(name, []).append(line)
    return found


def test_places_are_those_of_ranges_and_orders_have_a_column_for_every_item() -> None:
    found = make_chart_data(TRIALS, TWO, "percent", "strength")
    assert [one.number for one in found.trials] == [0, 1, 2, 3, 5], "who runs is not shown"
    assert [found.places(one)[0] for one in found.trials] == pytest.approx(
        [0.5, 0.0, 0.5, 0.5, 1.0]
    )
    assert [found.places(one)[1] for one in found.trials] == [0, 0, 1, 0, 0]
    assert [name for _, name in found.columns[0].ticks] == ["0.0001", "0.001", "0.01"]
    assert [name for _, name in found.columns[1].ticks] == ["32", "64 64"]
    ordered = [Trial(0, {"set.order": [4, 0, 2, 1, 3]}, DONE, 1.0)]
    found = make_chart_data(ordered, ORDER, "number", "score")
    assert found.places(found.trials[0]) == [0.25, 0.75, 0.5, 1.0, 0.0], "by item, where it stands"
    assert found.columns[3].full == "set.order: place of 3"


def test_the_best_is_trained_to_its_end_and_pruned_ones_are_hollow() -> None:
    found = make_chart_data(TRIALS, TWO, "percent", "strength")
    assert found.best is not None
    assert found.best.number == 2
    assert found.running_best() == [(0, 0.5), (2, 0.7)]
    told = told_of(make_charts(found, {})["history"])
    marks = {name: lines[-1].get_markerfacecolor() for name, lines in told.items()}
    assert marks == {
        "trial 0": "#2563eb",
        "trial 1": "#ffffff",
        "trial 2": "#f27900",
        "trial 3": "#5d6572",
        "trial 5": "#2563eb",
    }
    assert [line.get_marker() for line in told["trial 3"]] == ["x"]


def test_four_pictures_and_a_page_that_needs_nothing_else(tmp_path: Path) -> None:
    share = {"ppo.lr": 0.8, "net.hidden": 0.15}
    files = draw_sweep(tmp_path / "s", TRIALS, TWO, share, form="percent", title="a < b")
    assert [file.name for file in files] == [
        *("importance.png", "parallel.png", "slices.png", "history.png", PAGE),
    ]
    assert all(min(size_of(file)) > 100 for file in files[:-1])
    page = files[-1].read_text()
    assert "<title>a &lt; b</title>" in page
    assert "5 trials" in page
    assert "1 pruned" in page
    assert "best: trial 2, strength 70.0%" in page
    assert "80.0%" in page
    assert page.count("<svg") == 4
    assert not re.search(r"""(src|href)="(?!#)|https?://|@import""", page)
    assert "prefers-color-scheme: dark" in page
    assert page.count("<title>trial 3: no value\nppo.lr: 0.001") == 1
    assert sorted(file.name for file in (tmp_path / "s").iterdir()) == sorted(f.name for f in files)


@pytest.mark.parametrize(
    "trials",
    [
        [],
        pytest.param(TRIALS[:1], marks=pytest.mark.slow),
        pytest.param([TRIALS[3]], marks=pytest.mark.slow),
        pytest.param([TRIALS[4]], marks=pytest.mark.slow),
        pytest.param([TRIALS[1]], marks=pytest.mark.slow),
        pytest.param([trial(n, DONE, 0.25) for n in range(5)], marks=pytest.mark.slow),
        [trial(n, DONE, math.nan) for n in range(2)],
        [trial(0, DONE, 0.5), trial(1, DONE, -1e9), trial(2, DONE, 0.6)],
    ],
    ids=["none", "one", "failed", "running", "pruned", "constant", "not a number", "outlier"],
)
def test_whatever_was_tried_can_be_drawn(trials: list[Trial]) -> None:
    for ranges in (TWO, {"ppo.lr": TWO["ppo.lr"]}):
        found = make_chart_data(trials, ranges, "number", "strength")
        sheets = tuple(make_charts(found, {}).values())
        page = render(ChartPage("t", found.facts, sheets), ".html").decode()
        assert "not known yet" in page
        assert not re.search(r'"[^"]*\b(nan|inf)\b', page), "places are numbers"


def test_an_outlier_does_not_press_the_others_together() -> None:
    far = [trial(n, DONE, 0.5 + n / 100) for n in range(12)]
    found = make_chart_data([*far, trial(12, DONE, -1e9)], TWO, "number", "strength")
    assert found.span(intervals=False)[0] > 0
    assert make_chart_data(far, TWO, "number", "strength").span()[0] < 0.4, "intervals are inside"


def test_twelve_ranges_and_200_trials_have_room_for_their_names() -> None:
    ranges = read_ranges({f"ppo.setting_{n}": {"low": 1, "high": 3 + n} for n in range(12)}, "test")
    trials = [Trial(n, dict.fromkeys(ranges, 1 + n % 3), DONE, n / 200) for n in range(200)]
    found = make_chart_data(trials, ranges, "number", "strength")
    sheet = make_charts(found, {})["parallel"]
    assert len(told_of(sheet)) == 200
    best = told_of(sheet)["trial 199"][0]
    others = [lines[0].get_zorder() for lines in told_of(sheet).values()]
    assert best.get_zorder() == max(others) > min(others), "the best is on top"
    rows: dict[float, list[tuple[float, float]]] = {}
    for text in figure_of(sheet).texts:
        if text.get_horizontalalignment() == "center":
            box = text.get_window_extent()
            rows.setdefault(text.get_position()[1], []).append((box.x0, box.x1))
    assert len(rows) == 2
    for row in rows.values():
        ends = sorted(row)
        assert all(a[1] <= b[0] + 1 for a, b in pairwise(ends))
        assert ends[-1][1] < WIDTH


def test_ticks_are_inside_their_range() -> None:
    for one in (
        SearchRange("a", "float", 0.97, 0.9999),
        SearchRange("b", "float", 2e-4, 4e-4, log=True),
        SearchRange("c", "int", 1, 2),
        SearchRange("d", "int", 16, 65536, log=True),
        SearchRange("e", "float", -5.0, 5.0),
        SearchRange("f", "float", 1e-9, 1e3, log=True),
    ):
        (column,) = make_chart_data([], {one.name: one}, "number", "s").columns
        assert len(column.ticks) >= 2, one
        assert all(-1e-9 <= place <= 1 + 1e-9 for place, _ in column.ticks), one
        assert len({name for _, name in column.ticks}) == len(column.ticks), one
