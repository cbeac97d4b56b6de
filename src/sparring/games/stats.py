"""Statistics of how a game is played: ratios of sums of what its rules count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

PREFIX = "stats/"
"""Before their names among the curves of a run."""


@dataclass(frozen=True)
class Stat:
    """One of them: the sum of some counters over the sum of others."""

    name: str
    above: tuple[int, ...]
    """Counters, by their place in `rules.counters`."""
    below: tuple[int, ...]
    help: str
    detail: bool = False
    """One of many, such as that of a single round: recorded, but left out of tables and charts."""


def stat_values(stats: Sequence[Stat], counts: Sequence[float]) -> dict[str, float]:
    """Return the statistics by name; those of which nothing was counted are left out."""
    found = {}
    for stat in stats:
        if below := sum(counts[at] for at in stat.below):
            found[stat.name] = sum(counts[at] for at in stat.above) / below
    return found


def stat_metrics(stats: Sequence[Stat], counts: Sequence[float]) -> dict[str, float]:
    """Return them as learners report them."""
    return {PREFIX + name: value for name, value in stat_values(stats, counts).items()}


def stat_matrices(
    stats: Sequence[Stat], counters: int
) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What `curves` calls them, and the matrices [stats, counters] of what stands above and below.

    Times the counts they give both sums of every one at once.
    """
    above, below = np.zeros((2, len(stats), counters), np.int64)
    for row, stat in enumerate(stats):
        np.add.at(above[row], list(stat.above), 1)
        np.add.at(below[row], list(stat.below), 1)
    return [PREFIX + stat.name for stat in stats], above, below


def main_stats(stats: Sequence[Stat]) -> list[str]:
    """Return the names of those that tables and charts have."""
    return [stat.name for stat in stats if not stat.detail]


def format_stat(value: float) -> str:
    """Return a value as tables have it: three digits, and more before the point if need be."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
