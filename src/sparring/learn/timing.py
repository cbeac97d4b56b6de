"""Where the time of a learner goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter


@dataclass
class Timing:
    """Seconds spent, by part of an update. Always on: two clock reads per part.

    Curves and learners call these parts phases; a curriculum's are stretches of a run.
    """

    seconds: dict[str, float] = field(default_factory=dict)

    def __call__(self, name: str) -> Part:
        """Return what counts the time of a `with` block."""
        return Part(self, name)

    def take(self) -> dict[str, float]:
        """Return what was counted and start anew."""
        taken, self.seconds = self.seconds, {}
        return taken


class Part:
    """A `with` block whose seconds are counted. A generator would cost three times as much."""

    __slots__ = ("name", "started", "timing")

    def __init__(self, timing: Timing, name: str) -> None:
        self.timing, self.name = timing, name

    def __enter__(self) -> None:
        self.started = perf_counter()

    def __exit__(self, *_: object) -> None:
        seconds = self.timing.seconds
        seconds[self.name] = seconds.get(self.name, 0.0) + perf_counter() - self.started
