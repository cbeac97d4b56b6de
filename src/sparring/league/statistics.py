"""Statistics over a few runs per setting, after "Deep RL at the Edge of the Statistical Precipice".

The interquartile mean depends less on one lucky seed than the mean and uses more data than the
median; its interval is a bootstrap over whole runs with a fixed seed. Few resampled runs vary less
than new ones would, which Student's factor corrects.
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
GRID_POINTS = 2001
"""Shares tried for the ends of an interval."""
MIN_RUNS = 4
"""With fewer runs in a group, intervals contain the true value in less than 95 % of cases."""


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; a single run gives no interval."""

    value: float
    low: float | None = None
    high: float | None = None

    def complement(self) -> Estimate:
        """Return 1 minus the estimate: the share of the other side."""
        if self.low is None or self.high is None:
            return Estimate(1 - self.value)
        return Estimate(1 - self.value, 1 - self.high, 1 - self.low)

    def clipped(self) -> Estimate:
        """Return the estimate with its interval clipped to 0..1, as for a share."""
        if self.low is None or self.high is None:
            return self
        return Estimate(self.value, max(self.low, 0.0), min(self.high, 1.0))

    def plain(self) -> dict[str, float | None]:
        return {"value": self.value, "low": self.low, "high": self.high}


def interquartile_mean(values: npt.ArrayLike) -> Floats:
    """Return the mean of the middle half along the last axis.

    A quarter of the values, rounded down, is left out at each end.
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=-1)
    count = ordered.shape[-1]
    cut = count // 4
    mean: Floats = ordered[..., cut : count - cut].mean(axis=-1)
    return mean


def improvement(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> Floats:
    """Return the probability that one of our runs is better than one of theirs; ties count half.

    The Mann-Whitney statistic over the last axes, as a share of all pairs.
    """
    a = np.asarray(ours, np.float64)[..., :, None]
    b = np.asarray(theirs, np.float64)[..., None, :]
    share: Floats = ((a > b) + 0.5 * (a == b)).mean(axis=(-2, -1))
    return share


def bootstrap_samples(values: Floats, *, samples: int, seed: int) -> Floats:
    """Return a group with its runs resampled, [samples, ..., runs]."""
    runs = values.shape[-1]
    index = np.random.default_rng(seed).integers(runs, size=(samples, runs))
    return np.moveaxis(values[..., index], -2, 0)


def bootstrap_interval(
    statistic: Statistic, values: Floats, *, samples: int = SAMPLES, seed: int = 0
) -> tuple[Floats, Floats]:
    """Return the 95 % bootstrap interval of a statistic over runs, widened by Student's factor."""
    resampled = statistic(bootstrap_samples(values, samples=samples, seed=seed))
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    middle, factor = statistic(values), student_factor(values.shape[-1])
    return middle - factor * (middle - low), middle + factor * (high - middle)


def student_factor(runs: int) -> float:
    """Return the factor by which a bootstrap interval of this many runs is too narrow."""
    return student_95(runs - 1) / Z_95 * math.sqrt(runs / (runs - 1))


def estimate(
    statistic: Statistic, values: npt.ArrayLike, *, samples: int = SAMPLES, seed: int = 0
) -> Estimate:
    """Return a statistic of a group of runs; a single run has no interval."""
    array = np.asarray(values, np.float64)
    value = float(statistic(array))
    if array.shape[-1] < 2:
        return Estimate(value)
    low, high = bootstrap_interval(statistic, array, samples=samples, seed=seed)
    return Estimate(value, float(low), float(high))


def improvement_estimate(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Return the probability that one of our runs is better than one of theirs, with its interval.

    Newcombe's interval (2006, method 5) with Student's factor: all shares that the observed one
    does not contradict. A bootstrap would be too narrow where the difference is clear, and have no
    width where all runs of one side are better. A single run gives no interval.
    """
    observed, m, n = float(improvement(ours, theirs)), len(ours), len(theirs)
    if min(m, n) < 2:
        return Estimate(observed)
    share = np.linspace(0.0, 1.0, GRID_POINTS)
    pairs = (m + n) / 2 - 1
    variance = share * (1 - share) * (1 + pairs * ((1 - share) / (2 - share) + share / (1 + share)))
    half = student_95(m + n - 2) * np.sqrt(variance / (m * n))
    possible = share[np.abs(share - observed) <= half]
    return Estimate(observed, min(float(possible[0]), observed), max(float(possible[-1]), observed))


@dataclass(frozen=True)
class Band:
    """A curve over several runs, with its interval at every x."""

    x: Floats
    values: Floats
    low: Floats | None = None
    high: Floats | None = None

    def clipped(self) -> Band:
        """Return the band with its interval clipped to 0..1, as for shares."""
        if self.low is None or self.high is None:
            return self
        return Band(self.x, self.values, np.maximum(self.low, 0.0), np.minimum(self.high, 1.0))


def band(
    curves: Sequence[tuple[Floats, Floats]], *, points: int = 80, samples: int = 500, seed: int = 0
) -> Band:
    """Return the interquartile mean of curves (x, values) over the range that all of them cover.

    A single curve is returned unchanged.
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


def value_at(x: Floats, values: Floats, at: float) -> float:
    """Return a curve's value by linear interpolation."""
    return float(np.interp(at, x, values))
