"""Where the time of a learner goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Timing:
    """Seconds spent, by part of an update. Always on: two clock reads per part.

    Curves and learners call these parts phases; a curriculum's are stretches of a run.
    """

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def take(self) -> dict[str, float]:
        """Return what was counted and start anew."""
        taken, self.seconds = self.seconds, {}
        return taken
