"""What a few runs per setting say, after "Deep RL at the Edge of the Statistical Precipice".

The interquartile mean is moved less by one lucky seed than the mean and wastes less than the
median; its interval comes from drawing whole runs again, with a fixed seed. Few runs drawn again
vary less than fresh ones would, which Student's factor makes up for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparring.league.intervals import Z_95, student_95

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""From [..., runs] to [...]."""

SAMPLES = 2000
"""Of the bootstrap."""
SHARES = 2001
"""Shares that are tried for the ends of an interval."""
MIN_RUNS = 4
"""With fewer runs in a group intervals hold the truth less often than they say."""


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval, which one run alone cannot give."""

    value: float
    low: float | None = None
    high: float | None = None

    def turned(self) -> Estimate:
        """The share of the other side."""
        if self.low is None or self.high is None:
            return Estimate(1 - self.value)
        return Estimate(1 - self.value, 1 - self.high, 1 - self.low)

    def as_share(self) -> Estimate:
        """The same of a share: nothing below 0 or above 1."""
        if self.low is None or self.high is None:
            return self
        return Estimate(self.value, max(self.low, 0.0), min(self.high, 1.0))

    def plain(self) -> dict[str, float | None]:
        return {"value": self.value, "low": self.low, "high": self.high}


def interquartile_mean(values: npt.ArrayLike) -> Floats:
    """Return the mean of the middle half along the last axis.

    A quarter of the values, rounded down, is left out at each end: of fewer than four, none.
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=-1)
    count = ordered.shape[-1]
    cut = count // 4
    mean: Floats = ordered[..., cut : count - cut].mean(axis=-1)
    return mean


def improvement(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> Floats:
    """Return how probably a run of ours is better than one of theirs; equal ones count half.

    Mann and Whitney's statistic over the last axes, as a share of all pairs.
    """
    mine = np.asarray(ours, np.float64)[..., :, None]
    others = np.asarray(theirs, np.float64)[..., None, :]
    share: Floats = ((mine > others) + 0.5 * (mine == others)).mean(axis=(-2, -1))
    return share


def bootstrap_samples(values: Floats, *, samples: int, seed: int) -> Floats:
    """Return a group with its runs drawn anew, [samples, ..., runs]."""
    runs = values.shape[-1]
    chosen = np.random.default_rng(seed).integers(runs, size=(samples, runs))
    return np.moveaxis(values[..., chosen], -2, 0)


def bootstrap_interval(
    statistic: Statistic, values: Floats, *, samples: int = SAMPLES, seed: int = 0
) -> tuple[Floats, Floats]:
    """Return the 95 % interval of a statistic of a group of runs: a bootstrap, made as wide as
    Student's.
    """
    found = statistic(bootstrap_samples(values, samples=samples, seed=seed))
    low, high = np.percentile(found, [2.5, 97.5], axis=0)
    middle, wider = statistic(values), student_factor(values.shape[-1])
    return middle - wider * (middle - low), middle + wider * (high - middle)


def student_factor(runs: int) -> float:
    """By how much an interval of so many runs drawn again is too narrow."""
    return student_95(runs - 1) / Z_95 * math.sqrt(runs / (runs - 1))


def estimate(
    statistic: Statistic, values: npt.ArrayLike, *, samples: int = SAMPLES, seed: int = 0
) -> Estimate:
    """Return a statistic of a group of runs; one run has no interval."""
    array = np.asarray(values, np.float64)
    value = float(statistic(array))
    if array.shape[-1] < 2:
        return Estimate(value)
    low, high = bootstrap_interval(statistic, array, samples=samples, seed=seed)
    return Estimate(value, float(low), float(high))


def improvement_estimate(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Return how probably a run of ours is better than one of theirs; one run has no interval.

    Newcombe's interval (2006, method 5) with Student's factor: all shares from which the one that
    was found is not surprisingly far. Runs drawn again would vary the less the clearer a difference
    is, and not at all where all runs of the one side are better.
    """
    found, mine, others = float(improvement(ours, theirs)), len(ours), len(theirs)
    if min(mine, others) < 2:
        return Estimate(found)
    share = np.linspace(0.0, 1.0, SHARES)
    more = (mine + others) / 2 - 1
    variance = share * (1 - share) * (1 + more * ((1 - share) / (2 - share) + share / (1 + share)))
    half = student_95(mine + others - 2) * np.sqrt(variance / (mine * others))
    held = share[np.abs(share - found) <= half]
    return Estimate(found, min(float(held[0]), found), max(float(held[-1]), found))


@dataclass(frozen=True)
class Band:
    """A curve over several runs, with its interval at every place."""

    x: Floats
    values: Floats
    low: Floats | None = None
    high: Floats | None = None

    def as_share(self) -> Band:
        """The same of shares: nothing below 0 or above 1."""
        if self.low is None or self.high is None:
            return self
        return Band(self.x, self.values, np.maximum(self.low, 0.0), np.minimum(self.high, 1.0))


def band(
    curves: Sequence[tuple[Floats, Floats]], *, points: int = 80, samples: int = 500, seed: int = 0
) -> Band:
    """Return the interquartile mean of curves (x, values) over the stretch that all of them have.

    One curve comes back as it is.
    """
    if len(curves) == 1:
        return Band(*curves[0])
    first = max(x[0] for x, _ in curves)
    last = min(x[-1] for x, _ in curves)
    if first > last:
        return Band(np.empty(0), np.empty(0))
    grid = np.linspace(first, last, points) if last > first else np.array([first])
    values = np.stack([np.interp(grid, x, y) for x, y in curves], axis=-1)
    low, high = bootstrap_interval(interquartile_mean, values, samples=samples, seed=seed)
    return Band(grid, interquartile_mean(values), low, high)


def value_at(x: Floats, values: Floats, place: float) -> float:
    """Return a curve's value at a place, between two points on the line that joins them."""
    return float(np.interp(place, x, values))
