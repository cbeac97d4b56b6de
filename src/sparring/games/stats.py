"""Statistics of how a game is played: ratios of sums of what its rules count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


def values(stats: Sequence[Stat], counts: Sequence[float]) -> dict[str, float]:
    """Return the statistics by name; those of which nothing was counted are left out."""
    found = {}
    for stat in stats:
        if below := sum(counts[at] for at in stat.below):
            found[stat.name] = sum(counts[at] for at in stat.above) / below
    return found


def curves(stats: Sequence[Stat], counts: Sequence[float]) -> dict[str, float]:
    """Return them as learners report them."""
    return {PREFIX + name: value for name, value in values(stats, counts).items()}


def shown(stats: Sequence[Stat]) -> list[str]:
    """Return the names of those that tables and charts have."""
    return [stat.name for stat in stats if not stat.detail]


def written(value: float) -> str:
    """Return a value as tables have it: three digits, and more before the point if need be."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
