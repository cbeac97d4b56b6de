"""Statistics of play: ratios of sums of a game's counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

PREFIX = "stats/"
"""Prefix of their metric names."""


@dataclass(frozen=True)
class Stat:
    """The sum of some counters divided by the sum of others."""

    name: str
    above: tuple[int, ...]
    """Indices into `rules.counters`."""
    below: tuple[int, ...]
    help: str
    detail: bool = False
    """Recorded, but left out of tables and charts, such as the statistic of a single round."""


def stat_values(stats: Sequence[Stat], counts: Sequence[float]) -> dict[str, float]:
    """Return the statistics by name; those with a sum of 0 below are left out."""
    found = {}
    for stat in stats:
        if below := sum(counts[at] for at in stat.below):
            found[stat.name] = sum(counts[at] for at in stat.above) / below
    return found


def stat_metrics(stats: Sequence[Stat], counts: Sequence[float]) -> dict[str, float]:
    """Return the statistics as metrics."""
    return {PREFIX + name: value for name, value in stat_values(stats, counts).items()}


def stat_matrices(
    stats: Sequence[Stat], counters: int
) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return metric names, and matrices [stats, counters] of numerators and denominators.

    A matrix product with the counts gives all sums at once.
    """
    above, below = np.zeros((2, len(stats), counters), np.int64)
    for row, stat in enumerate(stats):
        np.add.at(above[row], list(stat.above), 1)
        np.add.at(below[row], list(stat.below), 1)
    return [PREFIX + stat.name for stat in stats], above, below


def main_stats(stats: Sequence[Stat]) -> list[str]:
    """Return the names of statistics for tables and charts."""
    return [stat.name for stat in stats if not stat.detail]


def format_stat(value: float) -> str:
    """Format a value with three significant digits, or as an integer from 100 on."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
