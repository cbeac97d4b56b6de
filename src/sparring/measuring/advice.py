"""What a table of speeds says about which numbers to take. Nothing that was not measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from sparring.draw.charts.axes import label
from sparring.league.intervals import student_95
from sparring.measuring.scaling import Point, Row

LITTLE = 0.03
"""Gains below this are not worth more cores or larger rollouts."""
WIDE = 1.5
"""Intervals whose ends are further apart say next to nothing."""
NOISY = "the passes differ a lot: measure for longer (--seconds), with nothing else on the cores"


@dataclass(frozen=True)
class Ratio:
    """How much faster one point is than another, pass by pass, with its 95 % interval."""

    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        """As a gain in percent."""
        if self.low is None or self.high is None:
            return f"{self.value - 1:+.0%}"
        return f"{self.value - 1:+.0%} ({self.low - 1:+.0%}..{self.high - 1:+.0%})"

    @property
    def told(self) -> bool:
        """Whether it is more than noise."""
        return self.low is not None and self.low > 1

    @property
    def wide(self) -> bool:
        """Whether it says next to nothing."""
        return self.low is None or self.high is None or self.high > WIDE * self.low


@dataclass(frozen=True)
class Advice:
    """What to take, and why."""

    take: Point | None
    text: str


def ratio(one: Row, other: Row) -> Ratio:
    """Hold two points against each other within every pass, so that a busy moment meets both."""
    logs = [math.log(a / b) for a, b in zip(one.rates, other.rates, strict=False)]
    middle = mean(logs)
    if len(logs) < 2:
        return Ratio(math.exp(middle))
    half = student_95(len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def advise(rows: Sequence[Row], usual: Point) -> Advice:
    """Say which point to take: the one of fewest cores and games that is nearly the fastest."""
    fine = [row for row in rows if row.readings and not row.why]
    if not fine:
        return Advice(None, "nothing could be measured, so there is nothing to advise")
    best = max(fine, key=lambda row: row.rate)
    near = [row for row in fine if ratio(best, row).value < 1 + LITTLE]
    take = min(near, key=lambda row: (row.point.cores, row.point.games))
    known = next((row for row in fine if row.point == usual), None)
    if known is not None and not worth_it(take, known):
        take = known
    word = "keep" if take is known else "take"
    told = f"{word} {take.point}: {label(take.rate, 'rate')} decisions/s"
    parts = [told + against_usual(take, known, best, usual), more_games(take, fine)]
    parts += [NOISY] if any(ratio(row, take).wide for row in fine if row is not take) else []
    return Advice(take.point, "; ".join(parts))


def worth_it(row: Row, known: Row) -> bool:
    """Whether a point is faster than the usual one beyond the noise, or as fast on fewer cores."""
    found = ratio(row, known)
    if row.point.cores < known.point.cores and found.low is not None:
        return found.low > 1 - LITTLE
    return found.told


def against_usual(take: Row, known: Row | None, best: Row, usual: Point) -> str:
    """Say how the advice stands to the preset."""
    if known is None:
        return f" (the preset's {usual} were not measured)"
    if take is known:
        if best is known:
            return ", the preset, and nothing that was measured is faster"
        gain = ratio(best, known)
        noise = "" if gain.told else ", which is within the noise"
        return f", the preset; the fastest, {best.point}, brings {gain}{noise}"
    gain = ratio(take, known)
    if gain.told:
        return f", {gain} over the preset's {usual}"
    return f", {gain} to the preset's {usual}, on fewer cores"


def more_games(take: Row, fine: Sequence[Row]) -> str:
    """Say what more games would bring with the same threads and workers."""
    same = [
        row
        for row in fine
        if row.point.games > take.point.games
        and (row.point.threads, row.point.workers) == (take.point.threads, take.point.workers)
    ]
    if not same:
        return "more games were not measured there (--games)"
    gain = max((ratio(row, take) for row in same), key=lambda found: found.value)
    if gain.value < 1 + LITTLE:
        return f"more games bring less than {LITTLE:.0%}"
    return f"more games bring {gain}{'' if gain.told else ', which is within the noise'}"
