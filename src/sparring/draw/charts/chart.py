"""Line charts, and bars of estimates with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparring.draw.charts.axes import Axis, Floats, Form, label, named_ticks, padded_range
from sparring.draw.charts.page import (
    CARD,
    COLORS,
    DASHES,
    HEIGHT,
    INK,
    SOFT,
    Area,
    Card,
    ChartPage,
    set_ticks,
    set_y_axis,
    write_beside,
)
from sparring.games.text_width import text_width, truncate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE_HEIGHT = 460
FEW_POINTS = 60
"""Lines with at most this many points show them as dots."""
MIN_NAME = 3
"""Characters that a shortened name needs."""
LEFT, RIGHT = 66, 24
"""Margins of the axes, in pixels."""
ROW = 52
"""Height of an estimate, in pixels."""


@dataclass(frozen=True)
class Series:
    """A line, or one layer of a stack; the area from `low` to `high` is filled."""

    name: str
    color: int
    x: Floats
    values: Floats
    low: Floats | None = None
    high: Floats | None = None
    dashed: bool = False
    joined: bool = True
    """Whether a line joins the points; else only dots are drawn."""

    @property
    def last(self) -> float:
        """The last finite value."""
        there = finite(self.values)
        return float(there[-1]) if len(there) else math.nan


@dataclass(frozen=True)
class Chart(Card):
    """Series on common axes."""

    title: str
    series: tuple[Series, ...]
    form: Form = "number"
    stacked: bool = False
    wide: bool = False
    span: tuple[float, float] | None = None
    """Range of the y axis. None: that of the lines."""
    from_zero: bool = False
    guide: float | None = None
    guide_name: str = ""
    axis: Axis | None = None
    """None: that of the page."""
    named: bool = True
    """Whether the legend has names; of charts that share their lines, one has."""

    @property
    def height(self) -> float:
        return WIDE_HEIGHT if self.wide else HEIGHT

    @property
    def y_range(self) -> tuple[float, float]:
        """Bottom and top of the y axis."""
        if self.span:
            return self.span
        # 90 % of the ranges behind the lines: their spikes would flatten everything else.
        parts = [finite(s.values) for s in self.series]
        parts += [percentile(s.low, 5) for s in self.series]
        parts += [percentile(s.high, 95) for s in self.series]
        values = np.concatenate(parts)
        if not self.from_zero or not len(values):
            return padded_range(values)
        return min(0.0, float(values.min())), padded_range([0.0, *values])[1]

    def guide_on_left(self, axis: Axis) -> bool:
        """Whether the label of the guide is on the left: the side with fewer lines near it."""
        low, high = self.y_range
        guide = low if self.guide is None else self.guide
        left = right = 0
        for s in self.series:
            above = (s.values - guide) / (high - low)
            near = (above > -0.03) & (above < 0.1)
            left += int((near & (s.x < 0.15 * axis.end)).sum())
            right += int((near & (s.x > 0.85 * axis.end)).sum())
        return left < right

    def draw(self, area: Area, page: ChartPage) -> None:
        """Draw title, legend with the last values, axes and curves."""
        axis = self.axis or page.axis
        area.text(20, 32, self.title, 17, INK)
        axes = area.axes(LEFT, 54 + self.keys(area), RIGHT, 54 if axis.caption else 38)
        axes.set_xlim(0, axis.end)
        set_y_axis(axes, *self.y_range, self.form, 5 if self.wide else 4)
        set_ticks(axes.xaxis, axis.ticks)
        axes.set_xlabel(axis.caption, labelpad=3)
        self.mark(axes, page)
        for series in self.series:
            self.line(axes, series)
        if self.guide is not None:
            axes.axhline(self.guide, color=SOFT, lw=1, ls=DASHES)
            side, beside, ha = (0.0, 4, "left")
            if not self.guide_on_left(axis):
                side, beside, ha = (axis.end, -4, "right")
            write_beside(axes, (side, self.guide), (beside, 6), self.guide_name, ha=ha)

    def keys(self, area: Area) -> float:
        """Draw the legend next to the title or below it; return the height it took."""
        exact = 0.0 if self.named else 1e-9  # a legend without names is short
        words = [
            (s.name if self.named else "", label(s.last, self.form, exact)) for s in self.series
        ]
        wide = [text_width(f"{name} {value}", 14) + 40 for name, value in words]
        below = sum(wide) + text_width(self.title, 17) + 30 > area.width - 40
        x, y = (20.0, 58) if below else (area.width - 2 - sum(wide), 32)
        for series, (name, value), room in zip(self.series, words, wide, strict=True):
            if below and x + room > area.width - 8 and x > 20:
                x, y = 20.0, y + 24
            area.text(x, y - 1, "○" if series.dashed else "●", 14, COLORS[series.color])
            after = area.text(x + 16, y, name, 14) + 6 if name else x + 16
            x = area.text(after, y, value, 14, INK) + 18
        return y - 32

    def mark(self, axes: Axes, page: ChartPage) -> None:
        """Draw the marks of a run; the first chart labels them if there is space."""
        if self.axis is not None or self.stacked:
            return
        ends = [*(mark.x for mark in page.marks[1:]), page.axis.end]
        for mark, end in zip(page.marks, ends, strict=False):
            if mark.x > 0:
                axes.axvline(mark.x, color=SOFT, lw=1, ls=DASHES)
            pixels = axes.get_window_extent().width * (end - mark.x) / page.axis.end
            name = truncate_text(mark.name, 13, pixels - 12)
            if self is page.charts[0] and (len(name) > MIN_NAME or name == mark.name):
                write_beside(axes, (mark.x, self.y_range[1]), (6, -2), name, va="top")

    def line(self, axes: Axes, series: Series) -> None:
        """Draw a line with its range, or one layer of a stack."""
        color, (bottom, top) = COLORS[series.color], self.y_range
        if series.low is not None and series.high is not None:
            low, high = (np.clip(end, bottom, top) for end in (series.low, series.high))
            clear = 0.85 if self.stacked else 0.16
            axes.fill_between(series.x, low, high, color=color, alpha=clear, lw=0)
        if self.stacked:
            return
        few = all(len(s.values) <= FEW_POINTS for s in self.series)
        axes.plot(
            series.x,
            np.clip(series.values, bottom, top),
            color=color,
            lw=2 if series.joined else 0,
            ls="--" if series.dashed else "-",
            marker="o" if few or not series.joined else "",
            ms=6.4 if series.joined else 10,
            mew=0,
            clip_on=False,
        )

    def pointed(self, page: ChartPage) -> dict[str, Any]:
        """Return the data of tooltips, and the margins of the axes."""
        axis = self.axis or page.axis
        return {
            "sides": [LEFT, RIGHT],
            "form": self.form,
            "by": axis.by,
            "names": axis.names,
            "end": axis.end,
            "series": [
                {
                    "name": s.name,
                    "color": s.color,
                    "x": to_json_numbers(s.x),
                    "y": to_json_numbers(s.values),
                    "low": None if self.stacked else to_json_numbers(s.low),
                    "high": None if self.stacked else to_json_numbers(s.high),
                }
                for s in self.series
            ],
        }


@dataclass(frozen=True)
class EstimateBar:
    """A value, its interval if any, and the single values that it comes from."""

    name: str
    color: int
    value: float
    low: float | None = None
    high: float | None = None
    points: tuple[float, ...] = ()

    def shown(self, form: Form) -> str:
        """The value as text, with its interval."""
        text = label(self.value, form)
        if self.low is None or self.high is None:
            return text
        return f"{text} ({label(self.low, form)} .. {label(self.high, form)})"


@dataclass(frozen=True)
class EstimateChart(Card):
    """Estimates with their intervals as horizontal bars on one axis."""

    title: str
    rows: tuple[EstimateBar, ...]
    form: Form = "number"
    span: tuple[float, float] | None = None
    """Range of the axis. None: that of the rows."""
    guide: float | None = None
    """The value that means no difference."""
    wide = False

    @property
    def height(self) -> float:
        return 108 + ROW * len(self.rows)

    @property
    def x_range(self) -> tuple[float, float]:
        """Left and right end of the axis."""
        if self.span:
            return self.span
        ends = [(row.value, row.low, row.high, *row.points) for row in self.rows]
        low, high = padded_range(value for row in ends for value in row if value is not None)
        return (max(low, 0.0), min(high, 1.0)) if self.form == "percent" else (low, high)

    def draw(self, area: Area, page: ChartPage) -> None:
        """Draw a bar per estimate with its name and numbers above it."""
        area.text(20, 32, self.title, 17, INK)
        axes = area.axes(32, 54, 32, area.height - 70 - ROW * len(self.rows))
        low, high = self.x_range
        axes.set(xlim=(low, high), ylim=(len(self.rows) + 16 / ROW, 0))
        set_ticks(axes.xaxis, named_ticks(low, high, 4, self.form))
        axes.set_yticks([])
        axes.grid(axis="x")
        if self.guide is not None:
            axes.axvline(self.guide, color=SOFT, lw=1, ls=DASHES)
        for number, row in enumerate(self.rows):
            y, color = number + 37 / ROW, COLORS[row.color]
            top, shown = 54 + ROW * number, row.shown(self.form)
            axes.axhspan(number + 1 / ROW, number + 26 / ROW, color=CARD, alpha=0.8, lw=0)
            room = area.width - 58 - text_width(shown, 14)
            area.text(20, top + 20, truncate_text(row.name, 14, room), 14)
            area.text(area.width - 20, top + 20, shown, 14, INK, anchor="rs")
            if row.low is not None and row.high is not None:
                axes.plot(np.clip([row.low, row.high], low, high), [y, y], color=color, lw=3)
            dots = np.clip(row.points, low, high)
            axes.plot(dots, np.full(len(dots), y), "o", ms=6, mew=0, color=INK, clip_on=False)
            if math.isfinite(row.value):
                value = min(max(row.value, low), high)
                axes.plot([value], [y], "o", ms=12, mew=0, color=color, clip_on=False)


def finite(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def percentile(values: Floats | None, percent: int) -> Floats:
    """Return the percentile of the finite values as an array of one, empty without any."""
    there = finite(values) if values is not None else np.empty(0)
    return np.percentile(there, [percent]) if len(there) else there


def to_json_numbers(values: Iterable[float] | None) -> list[float | None] | None:
    """Return numbers for JSON; NaN and infinity become None."""
    if values is None:
        return None
    return [float(f"{v:.5g}") if math.isfinite(v) else None for v in values]
