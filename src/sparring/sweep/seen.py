"""What trials of a sweep say, as pictures need it: where settings lie, and what came of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sparring.draw.charts.axes import Form, label, padded_range, ticks
from sparring.draw.charts.page import SCALE
from sparring.sweep.space import CHOICE, INT, PERMUTATION, Range, shown
from sparring.sweep.trials import FAILED, PRUNED, RUNNING, Trial

MAX_ITEMS = 8
"""Of an order, up to which each has a column of its own."""
FEW = 12
"""Whole numbers up to which every one of them is a step."""
EVERY = 7
"""Whole numbers up to which every one of them is named."""
DECADE = 10.0
STEEP = 3.0
"""Power of a rank that chooses the color: above 1, few trials have the strong ones."""
LOWEST = 0.1
"""Share of the values that may lie far below the others, which are then not pressed together."""
Ticks = tuple[tuple[float, str], ...]
"""Places from 0 to 1 and what they are called."""


@dataclass(frozen=True)
class Column:
    """A setting, or a part of one, as an axis from 0 to 1."""

    section: str
    """Of the setting, or the setting of which it is a part; may be empty."""
    name: str
    ticks: Ticks
    steps: bool = False
    """Values are few: choices, whole numbers, places of an order."""

    @property
    def full(self) -> str:
        """The whole name."""
        between = ": " if " " in self.name else "."
        return f"{self.section}{between}{self.name}" if self.section else self.name


@dataclass(frozen=True)
class Found:
    """Everything that was tried and has ended; `value` is None where nothing came of it."""

    ranges: Mapping[str, Range]
    trials: tuple[Trial, ...]
    form: Form = "number"
    what: str = "strength"
    """What the value is called."""

    @cached_property
    def columns(self) -> list[Column]:
        """The axes of all ranges."""
        return [column for one in self.ranges.values() for column in columns_of(one)]

    @cached_property
    def valued(self) -> list[Trial]:
        """Trials that something came of, the worst first; pruned ones before the others."""
        there = [one for one in self.trials if one.value is not None]
        return sorted(there, key=lambda one: (one.state != PRUNED, one.value, -one.number))

    @cached_property
    def best(self) -> Trial | None:
        """The best one that was trained to its end."""
        done = [one for one in self.valued if one.state != PRUNED]
        return done[-1] if done else None

    @cached_property
    def values(self) -> list[float]:
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
        return padded_range(ends, 0.06)

    def rung(self, value: float) -> int:
        """Where a value stands among all of them, as a number of the scale."""
        share = bisect_right(self.values, value) / len(self.values)
        return min(int(share**STEEP * len(SCALE)), len(SCALE) - 1)

    def told(self, one: Trial) -> str:
        """A trial in words, for the pointer."""
        text = "no value" if one.value is None else label(one.value, self.form)
        if one.low is not None and one.high is not None:
            text += f" ({label(one.low, self.form)} .. {label(one.high, self.form)})"
        ended = ", pruned" if one.state == PRUNED else ""
        settings = (f"{name}: {shown(value)}" for name, value in one.settings.items())
        return "\n".join([f"trial {one.number}: {text}{ended}", *settings])

    def places(self, one: Trial, width: float = 0.0) -> list[float]:
        """A trial's places; in columns of few values it is moved aside, another way than others."""
        aside = width * ((one.number * 0.6180339887) % 1.0 - 0.5)
        places = [place for each in self.ranges.values() for place in places_of(each, one)]
        pairs = zip(places, self.columns, strict=True)
        return [place + aside if column.steps else place for place, column in pairs]

    def running_best(self) -> list[tuple[int, float]]:
        """The trials that were better than all before them; pruned ones do not count."""
        best: list[tuple[int, float]] = []
        for one in sorted(self.valued, key=lambda trial: trial.number):
            rises = one.value is not None and (not best or one.value > best[-1][1])
            if one.value is not None and rises and one.state != PRUNED:
                best.append((one.number, one.value))
        return best

    @property
    def facts(self) -> tuple[str, ...]:
        """What stands above the pictures."""
        pruned = sum(one.state == PRUNED for one in self.trials)
        failed = sum(one.value is None for one in self.trials)
        facts = [f"{len(self.trials)} trials", f"{pruned} pruned"]
        facts += [f"{failed} failed"] if failed else []
        if self.best is not None and self.best.value is not None:
            value = label(self.best.value, self.form)
            facts.append(f"best: trial {self.best.number}, {self.what} {value}")
        return tuple(facts)


def found_of(trials: Sequence[Trial], ranges: Mapping[str, Range], form: Form, what: str) -> Found:
    """What trials say, as charts take it. Those that are running are left out."""
    ended = []
    for trial in trials:
        if trial.state != RUNNING:
            value = None if trial.state == FAILED else finite(trial.value)
            low, high = finite(trial.low), finite(trial.high)
            ended.append(replace(trial, value=value, low=low, high=high))
    return Found(ranges, tuple(ended), form, what)


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def columns_of(one: Range) -> list[Column]:
    """The axes of a range: one, or one for the place of each item of an order."""
    if one.kind == PERMUTATION and len(one.choices) <= MAX_ITEMS:
        places = [(at / (len(one.choices) - 1), str(at + 1)) for at in range(len(one.choices))]
        names = [f"place of {shown(item)}" for item in one.choices]
        return [Column(one.name, name, tuple(places), steps=True) for name in names]
    section, _, name = one.name.rpartition(".")
    if one.kind == PERMUTATION:
        return [Column(section, name, ((0.0, "as given"), (1.0, "reversed")), steps=True)]
    if one.kind == CHOICE:
        named = tuple((one.place(value), shown(value)) for value in one.choices)
        return [Column(section, name, named, steps=True)]
    few = one.kind == INT and (one.high - one.low) / max(one.step, 1) <= FEW
    return [Column(section, name, numbers(one), steps=few)]


def numbers(one: Range) -> Ticks:
    """Round numbers of a range, the ends included where nothing else is there."""
    if one.log:
        return log_ticks(one)
    at = [value for value in ticks(one.low, one.high, 4) if one.low <= value <= one.high]
    if one.kind == INT:
        at = [value for value in at if value == int(value)]
        by = max(one.step, 1)
        if (one.high - one.low) / by < EVERY:
            at = [one.low + by * n for n in range(int((one.high - one.low) / by) + 1)]
    step = at[1] - at[0] if len(at) > 1 else one.high - one.low
    if len(at) < 2:
        at = [one.low, one.high]
    form: Form = "rate" if one.high >= 10_000 else "number"
    return tuple((one.place(value), label(value, form, step)) for value in at)


def log_ticks(one: Range) -> Ticks:
    """Powers of ten, or 1, 2 and 5 of them where there are few."""
    low, high = math.floor(math.log10(one.low)), math.ceil(math.log10(one.high))
    for leads in ((1,), (1, 3), (1, 2, 5)):
        at = [lead * DECADE**power for power in range(low, high + 1) for lead in leads]
        at = [value for value in at if one.low * 0.999 <= value <= one.high * 1.001]
        if len(at) > 2:
            break
    else:
        at = [one.low, one.high]
    return tuple((min(max(one.place(value), 0.0), 1.0), f"{value:.3g}") for value in at)


def places_of(one: Range, trial: Trial) -> list[float]:
    """Where a trial lies in the columns of a range."""
    value = trial.settings[one.name]
    if one.kind == PERMUTATION and len(one.choices) <= MAX_ITEMS:
        last = len(one.choices) - 1
        return [list(value).index(item) / last for item in one.choices]
    return [one.place(value)]
