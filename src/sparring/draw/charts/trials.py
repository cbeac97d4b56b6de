"""What a search has tried, in pictures: where settings lie, and what came of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from sparring.draw.charts.axes import Form, label, named_ticks, ticks, widened
from sparring.draw.charts.paper import (
    CARD,
    COLOURS,
    INK,
    SCALE,
    SOFT,
    Area,
    Card,
    Page,
    number_up,
    tell,
    write_beside,
)
from sparring.games.lettering import fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 1240
"""Of a page with one of these pictures."""
HEAD = 84
"""Pixels of title and note."""
BLUE, ORANGE, GREEN, GREY = (COLOURS[at] for at in (0, 1, 2, 7))
STEEP = 3.0
"""Power of a rank that chooses the colour: above 1, few trials have the strong ones."""
LOWEST = 0.1
"""Share of the values that may lie far below the others, which are then not pressed together."""
FEW = 40
"""Lines up to which they are drawn strongly."""
COLUMNS, PANEL = 3, 272
"""Small charts side by side, and the height of one."""
BAR = 34
"""Height of a bar."""
LEFT, SIDE = 70, 80
"""Pixels beside the axes of a chart, and beside parallel ones."""
LONG = 6
"""Letters of a name that would stand out at the ends of an axis."""


@dataclass(frozen=True)
class Column:
    """A setting, or a part of one, as an axis from 0 to 1."""

    section: str
    """Of the setting, or the setting of which it is a part; may be empty."""
    name: str
    ticks: tuple[tuple[float, str], ...]
    """Places and what they are called."""
    steps: bool = False
    """Values are few: choices, whole numbers, places of an order."""

    @property
    def full(self) -> str:
        """The whole name."""
        between = ": " if " " in self.name else "."
        return f"{self.section}{between}{self.name}" if self.section else self.name


@dataclass(frozen=True)
class Tried:
    """One trial."""

    number: int
    places: tuple[float, ...]
    """Where it lies in every column."""
    value: float | None
    """None: nothing came of it."""
    low: float | None = None
    high: float | None = None
    pruned: bool = False
    text: str = ""
    """Its settings in words."""


@dataclass(frozen=True)
class Found:
    """Everything that was tried."""

    columns: tuple[Column, ...]
    trials: tuple[Tried, ...]
    form: Form = "number"
    what: str = "strength"
    """What the value is called."""

    @cached_property
    def valued(self) -> list[Tried]:
        """Trials that something came of, the worst first; pruned ones before the others."""
        there = [one for one in self.trials if one.value is not None and math.isfinite(one.value)]
        return sorted(there, key=lambda one: (not one.pruned, one.value, -one.number))

    @cached_property
    def best(self) -> Tried | None:
        """The best one that was trained to its end."""
        done = [one for one in self.valued if not one.pruned]
        return done[-1] if done else None

    @cached_property
    def values(self) -> list[float]:
        """All of them, rising."""
        return sorted(one.value for one in self.valued if one.value is not None)

    def span(self, *, intervals: bool = True) -> tuple[float, float]:
        """The values from bottom to top; what lies far below the others is at the edge."""
        values = self.values
        if not values:
            return 0.0, 1.0
        weak, high = values[int(LOWEST * len(values))], values[-1]
        low = max(values[0], weak - 0.5 * (high - weak))
        ends = [low, high]
        for one in self.valued if intervals else ():
            if one.value is not None and one.value >= low:
                ends += [end for end in (one.low, one.high) if end is not None]
        return widened(ends, 0.06)

    def rung(self, value: float) -> int:
        """Where a value stands among all of them, as a number of the scale."""
        share = bisect_right(self.values, value) / len(self.values)
        return min(int(share**STEEP * len(SCALE)), len(SCALE) - 1)

    def told(self, one: Tried) -> str:
        """A trial in words, for the pointer."""
        text = "no value" if one.value is None else label(one.value, self.form)
        if one.low is not None and one.high is not None:
            text += f" ({label(one.low, self.form)} .. {label(one.high, self.form)})"
        ended = ", pruned" if one.pruned else ""
        return f"trial {one.number}: {text}{ended}\n{one.text}"

    def places(self, one: Tried, width: float) -> list[float]:
        """A trial's places; in columns of few values it is moved aside, another way than others."""
        aside = width * ((one.number * 0.6180339887) % 1.0 - 0.5)
        pairs = zip(one.places, self.columns, strict=True)
        return [place + aside if column.steps else place for place, column in pairs]

    def running_best(self) -> list[tuple[int, float]]:
        """The trials that were better than all before them; pruned ones do not count."""
        best: list[tuple[int, float]] = []
        for one in sorted(self.valued, key=lambda trial: trial.number):
            if not one.pruned and one.value is not None and (not best or one.value > best[-1][1]):
                best.append((one.number, one.value))
        return best


@dataclass(frozen=True)
class Sheet(Card):
    """A picture of a search: a title, a line on how to read it, and what there is to see."""

    title: str
    note: str
    room: float
    """Pixels below the note."""
    fill: Callable[[Area], None] | None
    """Draws there. None: there is nothing to see yet."""
    empty: str = "no trial has ended yet"
    wide = True

    @property
    def height(self) -> float:
        """Pixels that it needs."""
        return HEAD + self.room

    def draw(self, area: Area, page: Page) -> None:
        """Draw the picture, or say that there is none."""
        area.text(24, 34, self.title, 19, INK)
        area.text(24, 58, fitted(self.note, 13, area.width - 40))
        if self.fill:
            self.fill(area)
        else:
            area.text(area.width / 2, HEAD + self.room / 2, self.empty, 16, SOFT, anchor="mm")


def importance_sheet(importance: Mapping[str, float]) -> Sheet:
    """Bars by setting, the longest first."""
    rows = sorted(importance.items(), key=lambda pair: pair[1])

    def fill(area: Area) -> None:
        axes = area.axes(320, HEAD, 110, 20)
        names = [fitted(name, 14, 290) for name, _ in rows]
        bars = axes.barh(names, [max(value, 0.0) for _, value in rows], 0.6, color=BLUE)
        axes.bar_label(bars, [label(value, "percent") for _, value in rows], padding=8, color=SOFT)
        axes.set_xticks([])
        axes.tick_params(axis="y", labelsize=14, labelcolor=INK)

    note = "how much of the differences between trials goes with each setting"
    room, empty = BAR * max(len(rows), 3) + 24, "not known yet: too few trials have ended"
    return Sheet("Importance", note, room, fill if rows else None, empty)


def parallel_sheet(found: Found) -> Sheet:
    """Lines through all settings and through the value at the right, the best on top."""
    note = (
        f"a line is a trial: the stronger its colour, the better its {found.what}; "
        "orange: the best, dashed: pruned"
    )
    fill = partial(draw_parallel, found) if found.valued else None
    return Sheet("Parallel coordinates", note, 470, fill)


def draw_parallel(found: Found, area: Area) -> None:
    """Draw axes, lines, and on top of them what places are called."""
    low, high = found.span(intervals=False)
    values = named_ticks(low, high, 5, found.form)
    names = tuple(((value - low) / (high - low), name) for value, name in values)
    columns = (*found.columns, Column("", found.what, names))
    axes = area.axes(SIDE, HEAD + 56, SIDE, 24)
    axes.set(xlim=(0, len(columns) - 1), ylim=(0, 1), xticks=[], yticks=[])
    gap = (area.width - 2 * SIDE) / (len(columns) - 1)
    for at, column in enumerate(columns):
        axes.axvline(at, color=SOFT, lw=1.2, clip_on=False)
        room, size = min(gap - 6, 200.0), 13 if gap > 96 else 11
        x, anchor = SIDE + gap * at, "ms"
        if column is columns[-1]:
            x, anchor = x + 40, "rs"
        area.text(x, HEAD + 22, fitted(column.section, 11, room), 11, SOFT, anchor=anchor)
        area.text(x, HEAD + 38, fitted(column.name, size, room), size, INK, anchor=anchor)
    for one in found.valued:
        draw_line(found, axes, one, (low, high))
    for at, column in enumerate(columns):
        room = SIDE - 8 if column is columns[-1] else gap - 10
        for place, name in column.ticks:
            axes.plot([at], [place], "_", ms=6, color=SOFT, clip_on=False, zorder=4)
            write_beside(
                axes, (at, place), (6, 0), fitted(name, 11, room), size=11, va="center", color=INK
            )


def draw_line(found: Found, axes: Axes, one: Tried, span: tuple[float, float]) -> None:
    """Draw the line of a trial."""
    assert one.value is not None
    low, high = span
    value = (min(max(one.value, low), high) - low) / (high - low)
    rung = found.rung(one.value)
    strong = rung / (len(SCALE) - 1) if len(found.valued) > FEW else 1.0
    (line,) = axes.plot([*found.places(one, 0.035), value], color=SCALE[rung], lw=1.2 + strong)
    line.set(linestyle="--" if one.pruned else "-", alpha=0.4 + 0.6 * strong, clip_on=False)
    if one is found.best:
        line.set(color=ORANGE, linewidth=3.2, alpha=1, marker="o", ms=8, mew=0, zorder=3)
    tell(found.told(one), line)


def slices_sheet(found: Found) -> Sheet:
    """A small chart for every setting, all with the same values upwards."""
    note = (
        f"{found.what} over each setting, with its interval; orange: the best, hollow: pruned, "
        "at the lower edge: far below the others"
    )
    rows = -(-max(len(found.columns), 1) // COLUMNS)
    fill = partial(draw_slices, found) if found.valued else None
    return Sheet("Slices", note, rows * PANEL, fill)


def draw_slices(found: Found, area: Area) -> None:
    """Draw the small charts."""
    wide = area.width / COLUMNS
    for index, column in enumerate(found.columns):
        down, across = divmod(index, COLUMNS)
        part = replace(area, left=area.left + across * wide, top=area.top + HEAD + down * PANEL)
        part = replace(part, width=wide, height=PANEL)
        part.text(LEFT, 20, fitted(column.full, 14, wide - LEFT - 20), 14, INK)
        axes = part.axes(LEFT, 34, 22, 50)
        number_up(axes, *found.span(), found.form, 5)
        axes.set_xlim(-0.045, 1.045)
        axes.spines.bottom.set_visible(True)
        room = (wide - LEFT) / max(len(column.ticks), 1)
        names = [fitted(name, 11, room) for _, name in column.ticks]
        axes.set_xticks([place for place, _ in column.ticks], names, size=11)
        for (place, _), text in zip(column.ticks, axes.get_xticklabels(), strict=True):
            if len(text.get_text()) > LONG and place in (0, 1):
                text.set_horizontalalignment("right" if place else "left")
        for one in found.valued:
            draw_dot(found, axes, one, found.places(one, 0.05)[index])


def history_sheet(found: Found) -> Sheet:
    """Values by trial, with the best so far; what failed is a cross at the bottom."""
    note = f"{found.what} by trial; line: the best so far, hollow: pruned, crosses: failed"
    return Sheet("History", note, 360, partial(draw_history, found) if found.trials else None)


def draw_history(found: Found, area: Area) -> None:
    """Draw dots, crosses and the line."""
    first, last = (end(one.number for one in found.trials) for end in (min, max))
    low, high = found.span()
    axes = area.axes(LEFT, HEAD + 14, 22, 58)
    number_up(axes, low, high, found.form, 6)
    room = 0.02 * (last - first) or 0.5
    axes.set_xlim(first - room, last + room)
    axes.set_xticks([at for at in ticks(first, last, 10) if at == int(at)] or [first])
    axes.set_xlabel("trial")
    for one in found.trials:
        if one.value is None:
            crosses = axes.plot([one.number], [low], "x", color=SOFT, mew=2, ms=8, clip_on=False)
            tell(found.told(one), *crosses)
    best = found.running_best()
    if best:
        numbers, values = zip(*best, (last + room, best[-1][1]), strict=True)
        axes.step(numbers, values, where="post", color=GREEN, lw=2.4)
    for one in found.valued:
        draw_dot(found, axes, one, one.number)


def draw_dot(found: Found, axes: Axes, one: Tried, x: float) -> None:
    """Draw a trial's value with its interval."""
    assert one.value is not None
    best, (low, high) = one is found.best, axes.get_ylim()
    colour = ORANGE if best else GREY if one.pruned else BLUE
    if one.low is not None and one.high is not None and not one.pruned:
        ends = np.clip([one.low, one.high], low, high)
        (line,) = axes.plot([x, x], ends, color=colour, lw=2.0 if best else 1.2)
        line.set_alpha(1.0 if best else 0.45)
        tell(found.told(one), line)
    inside = CARD if one.pruned else colour
    value = min(max(one.value, low), high)
    size = 12 if best else 7.2
    (mark,) = axes.plot([x], [value], "o", ms=size, mfc=inside, mec=colour, mew=1.6 * one.pruned)
    mark.set_clip_on(False)
    tell(found.told(one), mark)
