"""Data of a sweep's charts: axes of the ranges, and positions of the trials."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sparring.draw.charts.axes import Form, label, padded_range, ticks
from sparring.draw.charts.page import SCALE
from sparring.sweep.space import CHOICE, INT, PERMUTATION, SearchRange, show_setting
from sparring.sweep.trials import FAILED, PRUNED, RUNNING, Trial

MAX_ITEMS = 8
"""Maximum length of a permutation whose items have an axis each."""
FEW = 12
"""Maximum number of integers that count as discrete steps."""
EVERY = 7
"""Maximum number of integers that all have a tick."""
DECADE = 10.0
STEEP = 3.0
"""Exponent from rank to color: above 1, few trials have strong colors."""
LOWEST = 0.1
"""Share of the lowest values that may be clipped at the lower edge."""
Ticks = tuple[tuple[float, str], ...]
"""Positions from 0 to 1 and their labels."""


@dataclass(frozen=True)
class ChartAxis:
    """A setting, or an item of a permutation, as an axis from 0 to 1."""

    section: str
    """Section of the setting, or the permutation; may be empty."""
    name: str
    ticks: Ticks
    steps: bool = False
    """Whether values are discrete."""

    @property
    def full(self) -> str:
        between = ": " if " " in self.name else "."
        return f"{self.section}{between}{self.name}" if self.section else self.name


@dataclass(frozen=True)
class ChartData:
    """Finished trials and their ranges; `value` is None for failed trials."""

    ranges: Mapping[str, SearchRange]
    trials: tuple[Trial, ...]
    form: Form = "number"
    what: str = "strength"
    """Name of the value."""

    @cached_property
    def columns(self) -> list[ChartAxis]:
        return [column for one in self.ranges.values() for column in columns_of(one)]

    @cached_property
    def valued(self) -> list[Trial]:
        """Trials with a value, worst first; pruned ones before the others."""
        there = [one for one in self.trials if one.value is not None]
        return sorted(there, key=lambda one: (one.state != PRUNED, one.value, -one.number))

    @cached_property
    def best(self) -> Trial | None:
        """The best trial that was not pruned."""
        done = [one for one in self.valued if one.state != PRUNED]
        return done[-1] if done else None

    @cached_property
    def values(self) -> list[float]:
        return sorted(one.value for one in self.valued if one.value is not None)

    def span(self, *, intervals: bool = True) -> tuple[float, float]:
        """Return the range of the value axis; outliers below are clipped."""
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
        """Return the index of a value's color."""
        share = bisect_right(self.values, value) / len(self.values)
        return min(int(share**STEEP * len(SCALE)), len(SCALE) - 1)

    def tooltip(self, one: Trial) -> str:
        """Return the tooltip of a trial."""
        text = "no value" if one.value is None else label(one.value, self.form)
        if one.low is not None and one.high is not None:
            text += f" ({label(one.low, self.form)} .. {label(one.high, self.form)})"
        ended = ", pruned" if one.state == PRUNED else ""
        settings = (f"{name}: {show_setting(value)}" for name, value in one.settings.items())
        return "\n".join([f"trial {one.number}: {text}{ended}", *settings])

    def places(self, one: Trial, width: float = 0.0) -> list[float]:
        """Return a trial's positions; on discrete axes with a jitter of this width."""
        aside = width * ((one.number * 0.6180339887) % 1.0 - 0.5)
        places = [place for each in self.ranges.values() for place in places_of(each, one)]
        pairs = zip(places, self.columns, strict=True)
        return [place + aside if column.steps else place for place, column in pairs]

    def running_best(self) -> list[tuple[int, float]]:
        """Return the trials that improved on all before them, without pruned ones."""
        best: list[tuple[int, float]] = []
        for one in sorted(self.valued, key=lambda trial: trial.number):
            rises = one.value is not None and (not best or one.value > best[-1][1])
            if one.value is not None and rises and one.state != PRUNED:
                best.append((one.number, one.value))
        return best

    @property
    def facts(self) -> tuple[str, ...]:
        """Facts in the header of the page."""
        pruned = sum(one.state == PRUNED for one in self.trials)
        failed = sum(one.value is None for one in self.trials)
        facts = [f"{len(self.trials)} trials", f"{pruned} pruned"]
        facts += [f"{failed} failed"] if failed else []
        if self.best is not None and self.best.value is not None:
            value = label(self.best.value, self.form)
            facts.append(f"best: trial {self.best.number}, {self.what} {value}")
        return tuple(facts)


def make_chart_data(
    trials: Sequence[Trial], ranges: Mapping[str, SearchRange], form: Form, what: str
) -> ChartData:
    """Make the data of charts from trials that have ended."""
    ended = []
    for trial in trials:
        if trial.state != RUNNING:
            value = None if trial.state == FAILED else finite(trial.value)
            low, high = finite(trial.low), finite(trial.high)
            ended.append(replace(trial, value=value, low=low, high=high))
    return ChartData(ranges, tuple(ended), form, what)


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def columns_of(one: SearchRange) -> list[ChartAxis]:
    """Return the axes of a range: one, or one for each item of a permutation."""
    if one.kind == PERMUTATION and len(one.choices) <= MAX_ITEMS:
        places = [(at / (len(one.choices) - 1), str(at + 1)) for at in range(len(one.choices))]
        names = [f"place of {show_setting(item)}" for item in one.choices]
        return [ChartAxis(one.name, name, tuple(places), steps=True) for name in names]
    section, _, name = one.name.rpartition(".")
    if one.kind == PERMUTATION:
        return [ChartAxis(section, name, ((0.0, "as given"), (1.0, "reversed")), steps=True)]
    if one.kind == CHOICE:
        named = tuple((one.place(value), show_setting(value)) for value in one.choices)
        return [ChartAxis(section, name, named, steps=True)]
    few = one.kind == INT and (one.high - one.low) / max(one.step, 1) <= FEW
    return [ChartAxis(section, name, numbers(one), steps=few)]


def numbers(one: SearchRange) -> Ticks:
    """Return the ticks of a numeric range."""
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


def log_ticks(one: SearchRange) -> Ticks:
    """Return ticks at powers of ten, or 1, 2 and 5 times them if there are few."""
    low, high = math.floor(math.log10(one.low)), math.ceil(math.log10(one.high))
    for leads in ((1,), (1, 3), (1, 2, 5)):
        at = [lead * DECADE**power for power in range(low, high + 1) for lead in leads]
        at = [value for value in at if one.low * 0.999 <= value <= one.high * 1.001]
        if len(at) > 2:
            break
    else:
        at = [one.low, one.high]
    return tuple((min(max(one.place(value), 0.0), 1.0), f"{value:.3g}") for value in at)


def places_of(one: SearchRange, trial: Trial) -> list[float]:
    """Return the positions of a trial on the axes of a range."""
    value = trial.settings[one.name]
    if one.kind == PERMUTATION and len(one.choices) <= MAX_ITEMS:
        last = len(one.choices) - 1
        return [list(value).index(item) / last for item in one.choices]
    return [one.place(value)]
