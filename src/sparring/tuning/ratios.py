"""How much faster one is than another, from timings in turn, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from sparring.league.intervals import student_95
from sparring.speed.rounds import Reading

ENOUGH = 4
"""Turns that say themselves how much they vary."""
USUAL_NOISE, TAKEN_FOR = 0.05, 4.0
"""What a ratio of two timings varies by before anything is known, and for how many it counts."""


@dataclass(frozen=True)
class Gain:
    """A ratio minus one, with its 95 % interval."""

    value: float
    low: float
    high: float
    turns: int = 0
    """How often both were timed in turn."""

    def __str__(self) -> str:
        return f"{self.value:+.0%} ({100 * self.low:.0f}..{100 * self.high:.0f})"


@dataclass
class Noise:
    """What ratios of timings vary by on this machine, learned from all that were made."""

    squares: float = USUAL_NOISE**2 * TAKEN_FOR
    free: float = TAKEN_FOR

    def learn(self, logs: Sequence[float]) -> None:
        """Take in the ratios of one pair."""
        mean = fmean(logs)
        self.squares += sum((one - mean) ** 2 for one in logs)
        self.free += len(logs) - 1

    def error(self, count: int) -> float:
        """The standard error of a mean of so many."""
        return math.sqrt(self.squares / self.free / count)


@dataclass
class Duel:
    """Logarithms of what a challenger's rate is to the incumbent's, one for each turn."""

    logs: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Their middle: of many the median, which one busy moment does not move."""
        return median(self.logs) if len(self.logs) > 2 else fmean(self.logs)


@dataclass(frozen=True)
class Raced:
    """A race against the best of that moment, in logarithms of rates."""

    before: float
    """Of that best over the preset."""
    variance: float
    """Of `before`."""
    mean: float
    """Of the challenger over that best."""
    error: float
    turns: int
    won: bool

    def gain(self, scale: float = 1.0) -> Gain:
        """The gain over the preset.

        scale: what the best came to in full, as a share of what the races on the way to it said.
        """
        middle = scale * self.before + (scale if self.won else 1.0) * self.mean
        half = 2 * math.hypot(scale * math.sqrt(self.variance), self.error)
        ends = math.expm1(middle - half), math.expm1(middle + half)
        return Gain(math.expm1(middle), *ends, self.turns)


def in_full(logs: Sequence[float], noise: Noise) -> Gain:
    """What timings in turn say, with their 95 % interval.

    From a few on they say themselves how much they vary; of fewer, all timings so far do.
    """
    mean, count = fmean(logs), len(logs)
    if count >= ENOUGH:
        spread = math.sqrt(sum((one - mean) ** 2 for one in logs) / (count - 1))
        half = student_95(count - 1) * spread / math.sqrt(count)
    else:
        known = Noise(noise.squares, noise.free)
        known.learn(logs)
        half = student_95(int(known.free)) * known.error(count)
    return Gain(math.expm1(mean), math.expm1(mean - half), math.expm1(mean + half), count)


def rate_of(reading: Reading) -> float:
    """Decisions per second: the median round, or all together where they do not do the same.

    From replay with large batches, only every so manieth round makes a gradient step.
    """
    if len({one.optimiser_steps for one in reading.rounds}) <= 1:
        return reading.decisions_per_s
    return sum(one.decisions for one in reading.rounds) / max(reading.seconds, 1e-9)
