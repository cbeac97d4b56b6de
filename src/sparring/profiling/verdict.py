"""From what was seen to what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparring.measuring.gauge import Gauge
from sparring.profiling.evidence import Evidence

CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Verdict:
    """A cause, and what following the advice is expected to bring."""

    cause: str
    """In a word or two, such as "slow environment"; or `CANNOT_TELL`."""
    text: str
    """One sentence: where the time goes, why, what to do."""
    share: float
    """Of the time."""
    gain: float | None = None
    """Expected: 0.45 for 45 % more decisions per second; None where nobody knows."""
    timed: bool = False
    """Whether that was timed with the change in place; otherwise it is reckoned from the share."""
    do: str = ""
    """What to type, or to change in your own code."""
    change: Mapping[str, Any] = field(default_factory=dict)
    """The settings that would be another, as `merged` takes them; empty where it is code."""


def judge(evidence: Evidence, gauge: Gauge | None = None) -> list[Verdict]:
    """Return what to do, the most worthwhile first; never nothing.

    gauge: to time changes of settings before they are recommended; None: they are reckoned.
    """
    return [Verdict(CANNOT_TELL, "nothing stands out", 0.0)]
