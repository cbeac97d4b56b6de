"""Phases of training time: what a run reports, and what a profile looks for.

A block `with self.phases("update")` is a phase whose seconds are counted. A function that is too
short to time, or that has no metric, is marked with `phase` instead, which costs nothing at run
time: the profile reads the mark in the source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

SEARCHING = ("select", "evaluate", "settle")
"""Stages of a search: leaves are chosen, stepped and observed; a network evaluates them; the trees
take what it says."""
TREES = ("select", "settle")
"""Stages without the network."""


def phase(name: str) -> Callable[[Function], Function]:
    """Mark a function: what it calls belongs to the phase, unless it is marked itself."""
    del name  # read from the source
    return lambda function: function


@dataclass
class Timing:
    """Seconds spent in each part of an update. Always on: two clock reads per part.

    A part inside another counts for itself alone, so that the seconds add up to the time.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    inside: float = 0.0
    """Seconds of the parts that ended inside of the current one."""
    lapped: float = 0.0
    """When the last lap ended."""

    def __call__(self, name: str) -> TimedBlock:
        return TimedBlock(self, name)

    def start(self) -> None:
        """Begin the first lap."""
        self.lapped = perf_counter()

    def lap(self, name: str) -> None:
        """Add the seconds since the last lap to a part: a fifth of the cost of a block."""
        now = perf_counter()
        spent, self.lapped = now - self.lapped, now
        self.seconds[name] = self.seconds.get(name, 0.0) + spent
        self.inside += spent

    def take(self) -> dict[str, float]:
        """Return the seconds and reset them."""
        seconds, self.seconds = self.seconds, {}
        return seconds


class TimedBlock:
    """Context manager that adds its seconds. A generator would cost three times as much."""

    __slots__ = ("before", "name", "started", "timing")

    def __init__(self, timing: Timing, name: str) -> None:
        self.timing, self.name = timing, name

    def __enter__(self) -> None:
        self.before, self.timing.inside = self.timing.inside, 0.0
        self.started = perf_counter()

    def __exit__(self, *_: object) -> None:
        timing, spent = self.timing, perf_counter() - self.started
        seconds, own = timing.seconds, spent - timing.inside
        seconds[self.name] = seconds.get(self.name, 0.0) + own
        timing.inside = self.before + spent
