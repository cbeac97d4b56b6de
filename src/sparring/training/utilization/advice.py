"""Advice about the minibatch size, for the utilization line of a run and for `sparring profile`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

FACTORS = (0.25, 1, 4, 16)
"""Sizes to try, as multiples of the current one."""
MIN_SIZE = 16
MIN_GAIN = 0.05
SIMILAR_GAIN = 0.03
"""Sizes whose gains are this close to the best count as equal: the one nearest to the current size
wins, because it changes learning least."""


@dataclass(frozen=True)
class MinibatchAdvice:
    """Another minibatch size that makes a run faster."""

    now: int
    then: int
    gain: float
    """Of the whole run's speed; 0.1 is 10 % faster."""

    @property
    def text(self) -> str:
        return (
            f"minibatch {short_size(self.now)} -> {short_size(self.then)} "
            f"gives +{100 * self.gain:.0f} %"
        )


def short_size(samples: int) -> str:
    """Format a size without rounding: 4096 is 4k, 1000 is 1000."""
    return f"{samples // 1024}k" if samples >= 1024 and samples % 1024 == 0 else f"{samples}"


def sizes_to_try(now: int, max_size: int) -> list[int]:
    """Return the current size and smaller and larger ones up to `max_size`."""
    return sorted({now} | {min(max(round(now * f), MIN_SIZE), max_size) for f in FACTORS})


def advise_minibatch(
    now: int, ratios: Iterable[tuple[int, float, float]], update_share: float
) -> MinibatchAdvice | None:
    """Choose the size that makes the run fastest; None below a gain of 5 %.

    ratios: (size, expected, pessimistic) seconds per sample relative to those of the current size.
        A size whose pessimistic ratio is no gain is not advised.
    update_share: share of the run's time that the update takes.
    """
    gains = [
        (then, speedup(expected, update_share))
        for then, expected, pessimistic in ratios
        if then != now and speedup(pessimistic, update_share) > 0
    ]
    best = max((gain for _, gain in gains), default=0.0)
    if best < MIN_GAIN:
        return None
    good = [one for one in gains if one[1] >= max(best - SIMILAR_GAIN, MIN_GAIN)]
    then, gain = min(good, key=lambda one: abs(math.log(one[0] / now)))
    return MinibatchAdvice(now, then, gain)


def speedup(ratio: float, update_share: float) -> float:
    """Gain of the whole run if its update takes `ratio` times as long."""
    return 1 / (1 - update_share + update_share * ratio) - 1
