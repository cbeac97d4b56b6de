"""Timing changes of settings against what is, in turn, before they are recommended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.speed.rounds import has_replay, steady
from sparring.speed.stand import Stand, Timer, UnfitError
from sparring.training.meter.share import LEAST_GAIN
from sparring.training.planning.settings import merged

PAIRS, MORE_PAIRS = 3, 5
SEEMS = 1.1
"""A ratio that is worth two more pairs, where the first three disagree."""
WINDOW_S = 0.6
TRIALS_S = 15.0
"""After which no change is tried that was not begun."""
LONG_S = 0.9
"""A round that takes longer is timed with shorter rollouts: it is the same work, less of it."""
LEAST_STEPS = 2
NOW, THEN = "now", "then"


@dataclass(frozen=True)
class Timed:
    """A change beside what is."""

    ratios: tuple[float, ...]
    """Of decisions per second, one of each pair of windows."""

    @property
    def gain(self) -> float:
        """What may be promised: the worst, as what follows has to be at least half of it.

        Of five or more, one may have met a busy moment.
        """
        return sorted(self.ratios)[1 if len(self.ratios) >= MORE_PAIRS else 0] - 1

    @property
    def sure(self) -> bool:
        """Whether it was better every time, and by more than noise."""
        return self.gain >= LEAST_GAIN

    @property
    def open_question(self) -> bool:
        """Whether it seems better, and more pairs would tell."""
        return not self.sure and len(self.ratios) < MORE_PAIRS and median(self.ratios) > SEEMS


class Trials:
    """Times changes of one configuration."""

    def __init__(
        self, gauge: Timer, config: TrainConfig, decisions_per_s: float, samples: int
    ) -> None:
        """Open nothing yet.

        decisions_per_s: as it was seen, to know how long a round takes. samples: that a rollout
        has to hold for the changes to mean something.
        """
        self.stand, self.config = Stand(gauge), steady(config)
        self._until, self._shorter = 0.0, 1.0
        rows = config.collect.games * config.collect.steps
        round_s = rows / decisions_per_s
        if round_s > LONG_S and not has_replay(config):
            least = max(2 * samples / rows, LONG_S / round_s, LEAST_STEPS / config.collect.steps)
            self._shorter = min(least, 1.0)

    def begin(self) -> bool:
        """Open what is; False if it cannot be timed here."""
        try:
            self._rate(NOW, {}, 0.0)
        except (ConfigError, UnfitError):
            return False
        self._until = time.monotonic() + TRIALS_S
        return True

    @property
    def left(self) -> bool:
        return time.monotonic() < self._until

    def time(self, change: Mapping[str, Any]) -> Timed | None:
        """Time a change beside what is; None where it is refused or fails."""
        if not self.left:
            return None
        try:
            return self._pairs({NOW: {}, THEN: change})
        except (ConfigError, UnfitError):
            return None
        finally:
            self.stand.shut(THEN)

    def _pairs(self, changes: Mapping[str, Mapping[str, Any]]) -> Timed:
        """Both in turn; who goes first changes."""
        self._rate(THEN, changes[THEN], 0.0)  # opening it is no part of a window
        ratios: list[float] = []
        for pair in range(MORE_PAIRS):
            if pair == PAIRS and not Timed(tuple(ratios)).open_question:
                break
            order = (NOW, THEN) if pair % 2 else (THEN, NOW)
            rates = {name: self._rate(name, changes[name], WINDOW_S) for name in order}
            ratios.append(rates[THEN] / max(rates[NOW], 1e-9))
        return Timed(tuple(ratios))

    def _rate(self, name: str, change: Mapping[str, Any], seconds: float) -> float:
        """Decisions per second, with rollouts as much shorter as those of all others here."""
        config: TrainConfig = merged(self.config, change, "try")
        if self._shorter < 1:
            steps = max(round(config.collect.steps * self._shorter), 1)
            config = merged(config, {"collect": {"steps": steps}}, "try")
        return self.stand.time(name, config, seconds).rate()
