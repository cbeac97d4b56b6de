"""Where a run stands in its curriculum, as it is shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Standing:
    """What there is to show about where a run stands."""

    name: str
    phase: int
    """Counted from 1."""
    phases: int
    share: float | None
    """How much of the phase is over, from 0 to 1; None where nothing but strength ends it."""
    until: str
    """What ends it, in words; "" in the last one."""
    following: str
    """The name of the next one."""
