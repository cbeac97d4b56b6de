"""What a few runs per setting say, after "Deep RL at the Edge of the Statistical Precipice".

The interquartile mean is moved less by one lucky seed than the mean and wastes less than the
median; intervals come from drawing whole runs again, within each group, with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Statistic = Callable[..., Floats]
"""From arrays [..., runs], one per group, to [...]."""

SAMPLES = 2000
"""Of the bootstrap."""
ROUGH_BELOW = 5
"""With fewer runs in a group the bootstrap's intervals are too narrow."""


@dataclass(frozen=True)
class Found:
    """A value and its 95 % interval, which one run alone cannot give."""

    value: float
    low: float | None = None
    high: float | None = None

    def turned(self) -> Found:
        """The share of the other side."""
        if self.low is None or self.high is None:
            return Found(1 - self.value)
        return Found(1 - self.value, 1 - self.high, 1 - self.low)

    def plain(self) -> dict[str, float | None]:
        """As JSON has it."""
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


def drawn_again(groups: Sequence[Floats], *, samples: int, seed: int) -> list[Floats]:
    """Return every group with its runs drawn anew, [samples, ..., runs]; groups are never mixed."""
    draw = np.random.default_rng(seed)
    again = []
    for group in groups:
        chosen = draw.integers(group.shape[-1], size=(samples, group.shape[-1]))
        again.append(np.moveaxis(group[..., chosen], -2, 0))
    return again


def bounds(
    statistic: Statistic, groups: Sequence[Floats], *, samples: int = SAMPLES, seed: int = 0
) -> tuple[Floats, Floats]:
    """Return the 95 % interval of a statistic of groups of runs by a stratified bootstrap."""
    found = statistic(*drawn_again(groups, samples=samples, seed=seed))
    low, high = np.percentile(found, [2.5, 97.5], axis=0)
    return low, high


def estimate(
    statistic: Statistic, *groups: npt.ArrayLike, samples: int = SAMPLES, seed: int = 0
) -> Found:
    """Return a statistic of groups of runs; without an interval if a group has one run."""
    arrays = [np.asarray(group, np.float64) for group in groups]
    value = float(statistic(*arrays))
    if any(array.shape[-1] < 2 for array in arrays):
        return Found(value)
    low, high = bounds(statistic, arrays, samples=samples, seed=seed)
    return Found(value, float(low), float(high))


@dataclass(frozen=True)
class Band:
    """A curve over several runs, with its interval at every place."""

    x: Floats
    values: Floats
    low: Floats | None = None
    high: Floats | None = None


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
    low, high = bounds(interquartile_mean, [values], samples=samples, seed=seed)
    return Band(grid, interquartile_mean(values), low, high)


def value_at(x: Floats, values: Floats, place: float) -> float:
    """Return a curve's value at a place, between two points on the line that joins them."""
    return float(np.interp(place, x, values))
