"""Charts of a sweep and of a tune."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sparring.draw.charts.axes import Axis, Form, label, named_ticks, ticks
from sparring.draw.charts.chart import Chart, EstimateBar, EstimateChart, Series
from sparring.draw.charts.page import (
    CARD,
    COLORS,
    INK,
    SCALE,
    SOFT,
    Area,
    Card,
    ChartPage,
    render,
    set_tooltip,
    set_y_axis,
    write_beside,
)
from sparring.games.text_width import truncate_text
from sparring.store.files import write_atomic
from sparring.sweep.chart_data import ChartAxis, ChartData, make_chart_data
from sparring.sweep.parameters import show_value
from sparring.sweep.space import SearchRange
from sparring.sweep.speed_search import SpeedResult, SpeedTrial
from sparring.sweep.strength_search import StrengthResult
from sparring.sweep.trials import PRUNED, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGE = "sweep.html"
WIDTH = 1240
"""Width of a page in pixels."""
HEAD = 84
"""Height of title and note in pixels."""
BLUE, ORANGE, GREEN, GRAY = 0, 1, 2, 7
MAX_ROWS = 14
"""Maximum number of listed candidates."""
FEW = 40
"""Maximum number of lines that are drawn strongly."""
COLUMNS, PANEL = 3, 272
"""Slice charts per row, and their height in pixels."""
BAR = 34
"""Height of a bar in pixels."""
LEFT, SIDE = 70, 80
"""Margins of a chart and of parallel coordinates in pixels."""
LONG = 6
"""Length of a label that would stick out at the ends of an axis."""


def draw_sweep(
    folder: Path,
    trials: Sequence[Trial],
    ranges: Mapping[str, SearchRange],
    importance: Mapping[str, float],
    *,
    title: str = "",
    form: Form = "number",
    what: str = "strength",
) -> list[Path]:
    """Write the charts of a sweep into a folder: a PNG each, and a page with all of them.

    importance: shares by range; empty if not known yet.
    form, what: format and name of the objective.
    """
    found = make_chart_data(trials, ranges, form, what)
    sheets = make_charts(found, importance)
    pages = {
        f"{name}.png": ChartPage("", (), (sheet,), width=WIDTH) for name, sheet in sheets.items()
    }
    title = title or f"Sweep {folder.name}"
    pages[PAGE] = ChartPage(title, found.facts, tuple(sheets.values()), width=WIDTH)
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / name: page for name, page in pages.items()}
    for file, page in files.items():
        write_atomic(file, render(page, file.suffix))
    return list(files)


def make_charts(found: ChartData, importance: Mapping[str, float]) -> dict[str, SweepChart]:
    """Return the charts by file name."""
    valued, rows = bool(found.valued), -(-max(len(found.columns), 1) // COLUMNS)
    sheets = [
        SweepChart(
            "Importance",
            "how much of the differences between trials goes with each setting",
            BAR * max(len(importance), 3) + 24,
            partial(draw_importance, importance) if importance else None,
            "not known yet: too few trials have ended",
        ),
        SweepChart(
            "Parallel coordinates",
            f"a line is a trial: the stronger its color, the better its {found.what}; "
            "orange: the best, dashed: pruned",
            470,
            partial(draw_parallel, found) if valued else None,
        ),
        SweepChart(
            "Slices",
            f"{found.what} over each setting, with its interval; orange: the best, "
            "hollow: pruned, at the lower edge: far below the others",
            rows * PANEL,
            partial(draw_slices, found) if valued else None,
        ),
        SweepChart(
            "History",
            f"{found.what} by trial; line: the best so far, hollow: pruned, crosses: failed",
            360,
            partial(draw_history, found) if found.trials else None,
        ),
    ]
    return {sheet.title.split()[0].lower(): sheet for sheet in sheets}


@dataclass(frozen=True)
class SweepChart(Card):
    """A chart of a sweep: a title, a line on how to read it, and the drawing."""

    title: str
    note: str
    room: float
    """Pixels below the note."""
    fill: Callable[[Area], None] | None
    """Draws the chart. None: there is no data yet."""
    empty: str = "no trial has ended yet"
    wide = True

    @property
    def height(self) -> float:
        return HEAD + self.room

    def draw(self, area: Area, page: ChartPage) -> None:
        area.text(24, 34, self.title, 19, INK)
        area.text(24, 58, truncate_text(self.note, 13, area.width - 40))
        if self.fill:
            self.fill(area)
        else:
            area.text(area.width / 2, HEAD + self.room / 2, self.empty, 16, SOFT, anchor="mm")


def draw_importance(importance: Mapping[str, float], area: Area) -> None:
    """Draw a bar for every setting, the longest on top."""
    rows = sorted(importance.items(), key=lambda pair: pair[1])
    axes = area.axes(320, HEAD, 110, 20)
    names = [truncate_text(name, 14, 290) for name, _ in rows]
    bars = axes.barh(names, [max(value, 0.0) for _, value in rows], 0.6, color=COLORS[BLUE])
    axes.bar_label(bars, [label(value, "percent") for _, value in rows], padding=8, color=SOFT)
    axes.set_xticks([])
    axes.tick_params(axis="y", labelsize=14, labelcolor=INK)


def draw_parallel(found: ChartData, area: Area) -> None:
    """Draw a line through all settings and the value for every trial, the best on top."""
    low, high = found.span(intervals=False)
    values = named_ticks(low, high, 5, found.form)
    names = tuple(((value - low) / (high - low), name) for value, name in values)
    columns = (*found.columns, ChartAxis("", found.what, names))
    axes = area.axes(SIDE, HEAD + 56, SIDE, 24)
    axes.set(xlim=(0, len(columns) - 1), ylim=(0, 1), xticks=[], yticks=[])
    gap = (area.width - 2 * SIDE) / (len(columns) - 1)
    for at, column in enumerate(columns):
        axes.axvline(at, color=SOFT, lw=1.2, clip_on=False)
        room, size = min(gap - 6, 200.0), 13 if gap > 96 else 11
        x, anchor = SIDE + gap * at, "ms"
        if column is columns[-1]:
            x, anchor = x + 40, "rs"
        area.text(x, HEAD + 22, truncate_text(column.section, 11, room), 11, SOFT, anchor=anchor)
        area.text(x, HEAD + 38, truncate_text(column.name, size, room), size, INK, anchor=anchor)
    for one in found.valued:
        draw_line(found, axes, one, (low, high))
    for at, column in enumerate(columns):
        room = SIDE - 8 if column is columns[-1] else gap - 10
        for place, name in column.ticks:
            axes.plot([at], [place], "_", ms=6, color=SOFT, clip_on=False, zorder=4)
            write_beside(
                axes,
                (at, place),
                (6, 0),
                truncate_text(name, 11, room),
                size=11,
                va="center",
                color=INK,
            )


def draw_line(found: ChartData, axes: Axes, one: Trial, span: tuple[float, float]) -> None:
    assert one.value is not None
    low, high = span
    pruned = one.state == PRUNED
    value = (min(max(one.value, low), high) - low) / (high - low)
    rung = found.rung(one.value)
    strong = rung / (len(SCALE) - 1) if len(found.valued) > FEW else 1.0
    (line,) = axes.plot([*found.places(one, 0.035), value], color=SCALE[rung], lw=1.2 + strong)
    line.set(linestyle="--" if pruned else "-", alpha=0.4 + 0.6 * strong, clip_on=False)
    if one is found.best:
        line.set(color=COLORS[ORANGE], linewidth=3.2, alpha=1, marker="o", ms=8, mew=0, zorder=3)
    set_tooltip(found.tooltip(one), line)


def draw_slices(found: ChartData, area: Area) -> None:
    """Draw the values over every setting."""
    wide = area.width / COLUMNS
    for index, column in enumerate(found.columns):
        down, across = divmod(index, COLUMNS)
        part = replace(area, left=area.left + across * wide, top=area.top + HEAD + down * PANEL)
        part = replace(part, width=wide, height=PANEL)
        part.text(LEFT, 20, truncate_text(column.full, 14, wide - LEFT - 20), 14, INK)
        axes = part.axes(LEFT, 34, 22, 50)
        set_y_axis(axes, *found.span(), found.form, 5)
        axes.set_xlim(-0.045, 1.045)
        axes.spines.bottom.set_visible(True)
        room = (wide - LEFT) / max(len(column.ticks), 1)
        names = [truncate_text(name, 11, room) for _, name in column.ticks]
        axes.set_xticks([place for place, _ in column.ticks], names, size=11)
        for (place, _), text in zip(column.ticks, axes.get_xticklabels(), strict=True):
            if len(text.get_text()) > LONG and place in (0, 1):
                text.set_horizontalalignment("right" if place else "left")
        for one in found.valued:
            draw_dot(found, axes, one, found.places(one, 0.05)[index])


def draw_history(found: ChartData, area: Area) -> None:
    """Draw values by trial, with the best so far; failed trials are crosses at the bottom."""
    first, last = (end(one.number for one in found.trials) for end in (min, max))
    low, high = found.span()
    axes = area.axes(LEFT, HEAD + 14, 22, 58)
    set_y_axis(axes, low, high, found.form, 6)
    room = 0.02 * (last - first) or 0.5
    axes.set_xlim(first - room, last + room)
    axes.set_xticks([at for at in ticks(first, last, 10) if at == int(at)] or [first])
    axes.set_xlabel("trial")
    for one in found.trials:
        if one.value is None:
            crosses = axes.plot([one.number], [low], "x", color=SOFT, mew=2, ms=8, clip_on=False)
            set_tooltip(found.tooltip(one), *crosses)
    best = found.running_best()
    if best:
        numbers, values = zip(*best, (last + room, best[-1][1]), strict=True)
        axes.step(numbers, values, where="post", color=COLORS[GREEN], lw=2.4)
    for one in found.valued:
        draw_dot(found, axes, one, one.number)


def draw_dot(found: ChartData, axes: Axes, one: Trial, x: float) -> None:
    """Draw a trial's value with its interval."""
    assert one.value is not None
    best, pruned = one is found.best, one.state == PRUNED
    low, high = axes.get_ylim()
    color = COLORS[ORANGE if best else GRAY if pruned else BLUE]
    if one.low is not None and one.high is not None and not pruned:
        ends = np.clip([one.low, one.high], low, high)
        (line,) = axes.plot([x, x], ends, color=color, lw=2.0 if best else 1.2)
        line.set_alpha(1.0 if best else 0.45)
        set_tooltip(found.tooltip(one), line)
    inside = CARD if pruned else color
    value = min(max(one.value, low), high)
    size = 12 if best else 7.2
    (mark,) = axes.plot([x], [value], "o", ms=size, mfc=inside, mec=color, mew=1.6 * pruned)
    mark.set_clip_on(False)
    set_tooltip(found.tooltip(one), mark)


def make_page(
    title: str, facts: Sequence[str], found: SpeedResult, parameters: Sequence[SearchRange]
) -> ChartPage:
    """Return the charts of a search for speed: over time, and by parameter."""
    timed = [trial for trial in found.trials if trial.gain]
    if not timed:
        return ChartPage(title, tuple(facts), ())
    end = max(found.seconds, timed[-1].at_s) / 60 or 1.0
    charts: list[Chart | EstimateChart] = [over_time(found, timed, end), listed(found, timed)]
    charts += [card for parameter in parameters if (card := by_value(found, timed, parameter))]
    return ChartPage(title, tuple(facts), tuple(charts), Axis("minutes", end))


def over_time(found: SpeedResult, timed: Sequence[SpeedTrial], end: float) -> Chart:
    """Chart all timings over time, and the best so far."""
    best, x, y = 0.0, [], []
    for trial in timed:
        if trial.state in ("preset", "faster"):
            x += [trial.at_s / 60] * (2 if best else 1)
            y += [best, trial.rate] if best else [trial.rate]
            best = trial.rate
    x += [end] if found.better else [end, end]
    y += [best] if found.better else [best, found.rate]
    others = [trial for trial in timed if trial.point not in (found.preset, found.best)]
    marks = [
        Series("best so far", BLUE, np.array(x), np.array(y)),
        dots("tried", GRAY, others),
        dots("preset", ORANGE, [trial for trial in timed if trial.point == found.preset]),
    ]
    if found.better:
        marks.append(dots("chosen", GREEN, [found.trial(found.best)]))
    rate = found.preset_rate
    return Chart(
        "Decisions/s of all that was timed",
        tuple(series for series in marks if len(series.x)),
        "rate",
        wide=True,
        from_zero=True,
        guide=rate,
        guide_name=f"preset {label(rate, 'rate')}",
    )


def dots(name: str, color: int, trials: Sequence[SpeedTrial]) -> Series:
    x = np.array([trial.at_s / 60 for trial in trials])
    return Series(name, color, x, np.array([trial.rate for trial in trials]), joined=False)


def listed(found: SpeedResult, timed: Sequence[SpeedTrial]) -> EstimateChart:
    """List the best candidates with their intervals."""
    ordered = sorted(timed, key=lambda trial: trial.rate, reverse=True)[:MAX_ROWS]
    rows = [row(found, trial, found.name(trial.point)) for trial in ordered]
    return EstimateChart("Best first, decisions/s", tuple(rows), "rate", guide=found.preset_rate)


def by_value(
    found: SpeedResult, timed: Sequence[SpeedTrial], parameter: SearchRange
) -> EstimateChart | None:
    """List the best candidate for every value of a parameter."""
    rows = []
    for value in parameter.choices:
        there = [trial for trial in timed if trial.point[parameter.name] == value]
        if there:
            best = max(there, key=lambda trial: trial.rate)
            own = {parameter.name: parameter.start}
            others = best.point.replaced(own).describe_changes(found.preset)
            beside = f" with {others}" if others else ""
            rows.append(row(found, best, f"{show_value(value)}{beside}"))
    if len(rows) < 2:
        return None
    return EstimateChart(
        f"{parameter.name}, decisions/s", tuple(rows), "rate", guide=found.preset_rate
    )


def row(found: SpeedResult, trial: SpeedTrial, name: str) -> EstimateBar:
    assert trial.gain
    color = {found.best: GREEN, found.preset: ORANGE}.get(trial.point, BLUE)
    if trial.point == found.preset:
        return EstimateBar(name, ORANGE, trial.rate)
    low, high = (found.preset_rate * (1 + end) for end in (trial.gain.low, trial.gain.high))
    return EstimateBar(name, color, trial.rate, low, high)


def strength_page(title: str, facts: Sequence[str], found: StrengthResult) -> ChartPage:
    """Return the learning curves of all trainings, and the times to the target."""
    trials = [trial for trial in found.trials if trial.curve]
    if not trials:
        return ChartPage(title, tuple(facts), ())
    marked = {found.name(found.best): GREEN, found.name(found.preset): ORANGE}
    met = [found.preset]
    if found.finalist:
        met.append(found.finalist)
        marked.setdefault(found.name(found.finalist), BLUE)
    lines, rows = [], []
    for trial in trials:
        name, dashed = found.name(trial.settings), trial.seed > trials[0].seed
        at, _, values = (np.array(column) for column in zip(*trial.curve, strict=True))
        color = marked.get(name, GRAY)
        lines.append(Series(f"{name}, seed {trial.seed}", color, at / 60, values, dashed=dashed))
    end = max(float(line.x.max()) for line in lines) or 1.0
    chart = Chart(
        "Strength of all trainings",
        tuple(lines),
        "number",
        wide=True,
        guide=found.target,
        guide_name=f"target {found.target:.3f}",
    )
    for point in met:
        if known := [time for time in found.times(point) if time is not None]:
            name, ends = found.name(point), (min(known), max(known))
            middle = float(np.median(known))
            rows.append(EstimateBar(name, marked[name], middle, *ends, tuple(known)))
    times = (EstimateChart("Seconds to the target (dots: seeds)", tuple(rows)),) if rows else ()
    return ChartPage(title, tuple(facts), (chart, *times), Axis("minutes", end))
