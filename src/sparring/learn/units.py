"""The units that values and scores are measured in: they follow what rollouts bring."""

from __future__ import annotations

UNIT_MEMORY = 0.9
"""Share of the old unit that an update keeps. Returns may shrink tenfold in the first
seconds of a run; values that are measured in the old unit meanwhile hardly learn."""
MOST_UNITS = 3.0
"""Most units that the returns of a rollout measure. Where rewards are rare, returns may grow a
hundredfold in one update; in the old unit their squares would drown everything else."""


def next_unit(before: float, size: float) -> float:
    """The unit behind a rollout whose returns, or scores, have this size."""
    return max(UNIT_MEMORY * before + (1 - UNIT_MEMORY) * size, size / MOST_UNITS)
