"""A timer whose rates are known: the obvious reference for a search, with a budget of its own."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.speed.rounds import Measurement, Round
from sparring.speed.timer import SessionInfo, UnfitError
from sparring.sweep.parameters import GAMES, THREADS, parameter
from sparring.training.planning.settings import with_preset

BATCH = "ppo.minibatch"
CONFIG = with_preset("tic_tac_toe")
RULES = Rules("tic_tac_toe")
GRID = (
    parameter(GAMES, (64, 128, 256, 512), 256),
    parameter(BATCH, (256, 1024, 4096), 1024),
    parameter(THREADS, (1, 2), 2),
)
"""24 points, as benchmarks/tuning.py has them."""

Surface = Callable[[TrainConfig], float]
"""Decisions per second of settings; 0 if memory runs out, below 0 if they are refused."""


class KnownTimer:
    """Times settings by a formula. Noise comes in stretches that meet whoever is timed then."""

    def __init__(self, surface: Surface, *, noise: float = 0.0, seed: int = 0) -> None:
        """Begin at second 0."""
        self.surface, self.noise = surface, noise
        self.random = random.Random(seed)
        self.pid: int | None = 1
        self.now, self.open_s = 0.0, 0.7
        self.held: dict[str, TrainConfig] = {}
        self.timed: dict[str, list[float]] = {}
        self.max_open = 0
        self.bare = 10**8
        self.weigh: Callable[[TrainConfig], int] = lambda config: 0

    def budget(self) -> float:
        """The time of this timer, which passes only while it works."""
        return self.now

    def open(self, name: str, config: TrainConfig, *, warm_up: int = 2) -> SessionInfo:
        """Take some time, more with more rows."""
        rate = self.surface(config)
        if rate < 0:
            self.now += 0.1
            raise ConfigError("such a thing is not done")
        if rate == 0:
            self.now, self.held = self.now + self.open_s, {}
            self.pid = (self.pid or 0) + 1
            raise UnfitError("the process was killed, as happens when memory runs out")
        seconds = self.open_s + warm_up * rows(config) / rate
        self.now += seconds
        self.held[name] = config
        self.max_open = max(self.max_open, len(self.held))
        collect = config.collect
        sizes = (collect.games, collect.steps, collect.groups)
        return SessionInfo(
            *("cpu", "cpu", False, config.threads, *sizes, 1, seconds),
            memory_bytes=self.weigh(config),
            free_bytes=10**15,
        )

    def time(self, name: str, seconds: float, *, min_rounds: int = 1) -> Measurement:
        """Play whole rounds, at a rate that drifts slowly and jumps a little."""
        config = self.held[name]
        drift = 1 + 2 * self.noise * math.sin(self.now / 7)
        rate = self.surface(config) * drift * math.exp(self.random.gauss(0, self.noise))
        each = rows(config) / rate
        count = max(min_rounds, math.ceil(seconds / each))
        self.now += count * each
        self.timed.setdefault(name, []).append(rate)
        one = Round(each, rows(config), rows(config), 0, 1, 1, {})
        return Measurement((one,) * count, self.bare + sum(map(self.weigh, self.held.values())))

    def close(self, name: str) -> None:
        """Let go of it."""
        del self.held[name]


def rows(config: TrainConfig) -> int:
    """Rows of a rollout."""
    return config.collect.games * config.collect.steps
