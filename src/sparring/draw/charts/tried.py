"""What a search has tried, as its pictures need it: where settings lie, and what came of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sparring.draw.charts.axes import Form, label, ticks
from sparring.draw.charts.shapes import SCALE, Shape, Stroke, Words, fitting

STEEP = 3.0
"""Power of a rank that chooses the colour: above 1, few trials have the strong ones."""
LOWEST = 0.1
"""Share of the values that may lie far below the others, which are then not pressed together."""


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
        if intervals:
            inside = [one for one in self.valued if one.value is not None and one.value >= low]
            low = min([low, *(one.low for one in inside if one.low is not None)])
            high = max([high, *(one.high for one in inside if one.high is not None)])
        room = 0.06 * (high - low) or 0.1 * abs(high) or 0.5
        return low - room, high + room

    def colour(self, value: float) -> str:
        """Of the scale from bad to good."""
        return f"s{self.rung(value)}"

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


@dataclass(frozen=True)
class Frame:
    """The inside of a chart with values upwards."""

    left: float
    top: float
    width: float
    height: float
    low: float
    high: float

    def y(self, value: float) -> float:
        """Where a value lies; what is outside lies at the edge."""
        inside = min(max(value, self.low), self.high)
        return self.top + (self.high - inside) / (self.high - self.low) * self.height

    def x(self, place: float) -> float:
        """Where a place between 0 and 1 lies."""
        return self.left + place * self.width

    def grid(self, form: Form, size: int = 13, about: int = 4) -> list[Shape]:
        """Lines at round values, with their names at the left."""
        at = ticks(self.low, self.high, about)
        step = at[1] - at[0] if len(at) > 1 else self.high - self.low
        shapes: list[Shape] = []
        for value in at:
            y = self.y(value)
            shapes.append(Stroke([(self.left, y), (self.left + self.width, y)], "line"))
            shapes.append(Words(self.left - 7, y, label(value, form, step), size, "soft", "rm"))
        return shapes


def spread(number: int) -> float:
    """A place between -0.5 and 0.5 that is another for every trial: what is alike lies apart."""
    return (number * 0.6180339887) % 1.0 - 0.5


def shifted(one: Tried, columns: Sequence[Column], width: float) -> list[float]:
    """A trial's places, with those in columns of few values moved aside a little."""
    return [
        place + (width * spread(one.number) if column.steps else 0.0)
        for place, column in zip(one.places, columns, strict=True)
    ]


def nothing(width: float, height: float, text: str) -> Shape:
    """What stands where there is nothing to see."""
    return Words(width / 2, height / 2, fitting(text, width - 40, 16), 16, "soft", "mm")
