"""Timing a change of settings against what is, in turn, before it is recommended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.speed.rounds import Reading, steady
from sparring.speed.stand import Gauge, UnfitError
from sparring.training.planning.algorithms import sections_of
from sparring.training.planning.settings import merged

PAIRS, MORE_PAIRS = 3, 5
SEEMS = 1.1
"""A ratio that is worth two more pairs, where the first three disagree."""
WINDOW_S = 0.6
LONG_S = 0.9
"""A round that takes longer is timed with shorter rollouts: it is the same work, less of it."""
LEAST_STEPS = 2
WORTH = 0.05
"""Gains below this are not told from noise."""
NOW, THEN = "now", "then"


@dataclass(frozen=True)
class Timed:
    """A change beside what is."""

    ratios: tuple[float, ...]
    """Of decisions per second, one of each pair of windows."""

    @property
    def worst(self) -> float:
        """The worst that counts: of five or more, one may have met a busy moment."""
        return sorted(self.ratios)[1 if len(self.ratios) >= MORE_PAIRS else 0]

    @property
    def gain(self) -> float:
        """What may be promised: the worst, as what follows has to be at least half of it."""
        return self.worst - 1

    @property
    def sure(self) -> bool:
        """Whether it was better every time, and by more than noise."""
        return self.worst > 1 and self.gain >= WORTH

    @property
    def open_question(self) -> bool:
        """Whether it seems better, and more pairs would tell."""
        return not self.sure and len(self.ratios) < MORE_PAIRS and median(self.ratios) > SEEMS


class Bench:
    """Times changes of one configuration; within so many seconds in all."""

    def __init__(
        self, gauge: Gauge, config: TrainConfig, decisions_per_s: float = 0.0, seconds: float = 15.0
    ) -> None:
        """Open nothing yet. decisions_per_s: as it was seen, to know how long a round takes."""
        self.gauge, self.config, self.seconds = gauge, steady(config), seconds
        self._seen = decisions_per_s
        self._shorter = 1.0
        self._until = 0.0
        self._open = False

    def begin(self, *, samples: int = 0) -> bool:
        """Open what is. samples: that a rollout has to hold for the changes to mean something.

        Where no update was seen to end, nobody knows how long one would take: nothing is timed.
        """
        if not self._seen:
            return False
        rows = self.config.collect.games * self.config.collect.steps
        round_s = rows / self._seen
        if round_s > LONG_S and self._has_rollouts():
            least = max(2 * samples / rows, LONG_S / round_s, LEAST_STEPS * rows_of(self.config))
            self._shorter = min(least, 1.0)
        try:
            self.gauge.open(NOW, self._short({}), warm_up=1)
        except (ConfigError, UnfitError):
            return False
        self._open, self._until = True, time.monotonic() + self.seconds
        return True

    @property
    def left(self) -> bool:
        """Whether there is time for another change."""
        return self._open and time.monotonic() < self._until

    def time(self, change: Mapping[str, Any]) -> Timed | None:
        """Time a change beside what is; None where it is refused or fails."""
        if not self.left:
            return None
        try:
            self.gauge.open(THEN, self._short(change), warm_up=1)
        except (ConfigError, UnfitError):
            self._open = self._is_open()
            return None
        try:
            return self._pairs()
        except UnfitError:
            self._open = self._is_open()
            return None
        finally:
            self._shut()

    def _pairs(self) -> Timed:
        """Both in turn; who goes first changes."""
        ratios: list[float] = []
        for pair in range(MORE_PAIRS):
            if pair == PAIRS and not Timed(tuple(ratios)).open_question:
                break
            order = (NOW, THEN) if pair % 2 else (THEN, NOW)
            rates = {name: rate_of(self.gauge.time(name, WINDOW_S)) for name in order}
            ratios.append(rates[THEN] / max(rates[NOW], 1e-9))
        return Timed(tuple(ratios))

    def _shut(self) -> None:
        try:
            self.gauge.shut(THEN)
        except UnfitError:
            self._open = False

    def _is_open(self) -> bool:
        """Whether the process still has what is."""
        try:
            self.gauge.time(NOW, 0.0)
        except UnfitError:
            return False
        return True

    def _has_rollouts(self) -> bool:
        return "replay" not in sections_of(self.config.algo, self.config.dqn.mode)

    def _short(self, change: Mapping[str, Any]) -> TrainConfig:
        """Settings with a change, with rollouts as much shorter as all others here."""
        config: TrainConfig = merged(self.config, change, "try")
        if self._shorter == 1:
            return config
        steps = max(round(config.collect.steps * self._shorter), 1)
        shorter: TrainConfig = merged(config, {"collect": {"steps": steps}}, "try")
        return shorter


def rows_of(config: TrainConfig) -> float:
    """What one step is of a rollout."""
    return 1 / config.collect.steps


def rate_of(reading: Reading) -> float:
    """Decisions per second over all of a window."""
    return sum(one.decisions for one in reading.rounds) / max(reading.seconds, 1e-9)
