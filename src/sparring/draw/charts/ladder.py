"""Ratings as pictures: the ladder with its intervals, and how ratings went over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparring.draw.charts.axes import Axis, By, ticks
from sparring.draw.charts.curves import Chart, Page, Series
from sparring.draw.charts.png import (
    COLOURS,
    HEAD,
    INK,
    LINE,
    MARGIN,
    SOFT,
    Pen,
    draw_png,
    shortened,
)
from sparring.draw.charts.several import colour_of

WIDTH = 1200
ROOM = {12: 44, 40: 30}
"""Players up to which a rung is so high; beyond the last, LEAST_ROOM."""
LEAST_ROOM = 20
LONGEST_NAME = 320
"""Pixels; a longer name is cut."""


@dataclass(frozen=True)
class Rung:
    """A player on the ladder."""

    name: str
    rating: float
    low: float
    """The ends of the 95 % interval, which are the rating itself where it is fixed."""
    high: float
    fixed: bool = False
    """An anchor, which the others are measured from."""
    bot: bool = False
    """Drawn in another colour."""


@dataclass(frozen=True)
class Past:
    """One player's ratings over time."""

    name: str
    x: npt.NDArray[np.float64]
    """Minutes, decisions or updates."""
    rating: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64] | None = None
    high: npt.NDArray[np.float64] | None = None


def draw_ladder(
    rungs: Sequence[Rung], *, title: str, facts: Sequence[str] = (), unit: str = "Elo"
) -> bytes:
    """Return the ladder as a PNG, in the order that was given, usually the best first."""
    room = next((size for most, size in ROOM.items() if len(rungs) <= most), LEAST_ROOM)
    size = 12 if room == LEAST_ROOM else 15
    pen = Pen(WIDTH, HEAD + room * len(rungs) + 80)
    pen.text((MARGIN, 52), shortened(pen, title, WIDTH - 2 * MARGIN, 28), 28, INK)
    pen.text((MARGIN, 84), shortened(pen, "  ·  ".join(facts), WIDTH - 2 * MARGIN, 16), 16, SOFT)
    pen.box(MARGIN / 2, HEAD - 8, WIDTH - MARGIN, room * len(rungs) + 70)
    names = [shortened(pen, rung.name, LONGEST_NAME, size) for rung in rungs]
    left = MARGIN + 60 + max(pen.width_of(name, size) for name in names)
    right = WIDTH - MARGIN - 240
    low, high = span_of(rungs)
    bottom = HEAD + 6 + room * len(rungs)

    def x(value: float) -> float:
        return left + (min(max(value, low), high) - low) / (high - low) * (right - left)

    for value in ticks(low, high, 7):
        pen.line([(x(value), HEAD + 6), (x(value), bottom)], LINE, 1)
        pen.text((x(value), bottom + 10), f"{value:g}", 14, SOFT, "mt")
    pen.text((right + 24, bottom + 10), f"{unit}, 95 %; orange: bots", 14, SOFT, "lt")
    for at, (rung, name) in enumerate(zip(rungs, names, strict=True)):
        y = HEAD + 6 + room * (at + 0.5)
        pen.text((MARGIN + 24, y), str(at + 1), size, SOFT, "rm")
        pen.text((MARGIN + 36, y), name, size, INK, "lm")
        draw_rung(pen, rung, x, y)
        pen.text((right + 24, y), told(rung), size, INK, "lm")
    return pen.finish()


def draw_rung(pen: Pen, rung: Rung, x: Callable[[float], float], y: float) -> None:
    """Draw a rating with its interval; an anchor is a ring."""
    colour = COLOURS[1] if rung.bot else COLOURS[0]
    if not rung.fixed:
        ends = [x(rung.low), x(rung.high)]
        pen.line([(ends[0], y), (ends[1], y)], colour, 2.5)
        for end in ends:
            pen.line([(end, y - 5), (end, y + 5)], colour, 2.5)
    pen.dot(x(rung.rating), y, 6, colour)
    if rung.fixed:
        pen.dot(x(rung.rating), y, 3, "#ffffff")


def told(rung: Rung) -> str:
    """Return a rating as text."""
    if rung.fixed:
        return f"{rung.rating:.0f}  (fixed)"
    return f"{rung.rating:.0f}  ({rung.low:.0f} .. {rung.high:.0f})"


def span_of(rungs: Sequence[Rung]) -> tuple[float, float]:
    """Return the ratings at the left and at the right."""
    ends = [v for rung in rungs for v in (rung.rating, rung.low, rung.high) if math.isfinite(v)]
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    room = 0.05 * (high - low) or 10.0
    return low - room, high + room


def draw_past(
    players: Sequence[Past], *, title: str, facts: Sequence[str] = (), by: By = "decisions"
) -> bytes:
    """Return ratings over time as a PNG: a line per player, its interval behind it."""
    lines = []
    for at, player in enumerate(players):
        colour, dashed = colour_of(at)
        ends = player.low, player.high
        lines.append(Series(player.name, colour, player.x, player.rating, *ends, dashed))
    end = max((float(player.x.max()) for player in players if len(player.x)), default=1.0)
    charts = (Chart("Rating, Elo", tuple(lines), "number", wide=True),) if lines else ()
    return draw_png(Page(title, tuple(facts), charts, Axis(by, end or 1.0)))
