"""Another size of minibatches, where it was measured that it makes a run faster."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LEAST_GAIN = 0.05
NEAR = 0.03
"""Of sizes whose gains are so near to the best the one next to the run's own counts: it learns
most as before."""


@dataclass(frozen=True)
class Advice:
    """Another minibatch that makes a run faster."""

    now: int
    then: int
    gain: float
    """Of the whole run's speed, 0.1 for a tenth more."""

    @property
    def words(self) -> str:
        """As the line has it."""
        return f"minibatch {size(self.now)} -> {size(self.then)} gives +{100 * self.gain:.0f} %"


def size(samples: int) -> str:
    """A size as people write it, never rounded."""
    return f"{samples // 1024}k" if samples >= 1024 and samples % 1024 == 0 else f"{samples}"


@dataclass(frozen=True)
class Pace:
    """Seconds per sample by size of minibatch, by those of the run's own size."""

    now: int
    ratios: tuple[tuple[int, float, float], ...]
    """(size, median over rounds, their upper quarter)."""

    def advice(self, update_share: float) -> Advice | None:
        """Return what is worth trying if so much of the time is the update's.

        Nothing is, below a gain of 5 %, or if it might be none as far as the rounds tell.
        """
        gains = [
            (then, gain_of(middle, update_share))
            for then, middle, high in self.ratios
            if then != self.now and gain_of(high, update_share) > 0
        ]
        best = max((gain for _, gain in gains), default=0.0)
        if best < LEAST_GAIN:
            return None
        good = [one for one in gains if one[1] >= max(best - NEAR, LEAST_GAIN)]
        then, gain = min(good, key=lambda one: abs(math.log(one[0] / self.now)))
        return Advice(self.now, then, gain)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"now": self.now, "ratios": [list(one) for one in self.ratios]}

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Pace | None:
        """From what `plain` wrote; None if that is damaged."""
        try:
            ratios = tuple((int(a), float(b), float(c)) for a, b, c in entry["ratios"])
            found = cls(int(entry["now"]), ratios)
        except (KeyError, TypeError, ValueError):
            return None
        sound = all(n > 0 and 0 < x < math.inf for n, m, h in ratios for x in (m, h))
        return found if sound else None


def gain_of(ratio: float, update_share: float) -> float:
    """What the whole gains if its update takes `ratio` times as long."""
    return 1 / (1 - update_share + update_share * ratio) - 1
