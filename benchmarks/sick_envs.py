"""Environments with something wrong, each beside one in which it is mended.

By name: benchmarks/sick_envs.py:make_slow. All play the same game, `Harbor`: steer a ship along a
channel with currents, 40 steps at most.
"""

from __future__ import annotations

import copy
import gc
import json
import logging
import tempfile
import time
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import nn

SIGHT = 12
LENGTH = 40


class Harbor(gymnasium.Env[Any, Any]):
    """The game, and nothing else: a step takes some ten microseconds."""

    observation_space = spaces.Box(-4, 4, (SIGHT,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self) -> None:
        self.currents = np.zeros(LENGTH + SIGHT, np.float32)
        self.place, self.age = 0.0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.currents[:] = self.np_random.normal(0, 0.3, LENGTH + SIGHT)
        self.place, self.age = 0.0, 0
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place += 0.4 * (int(action) - 1) + float(self.currents[self.age])
        self.age += 1
        ashore = abs(self.place) > 2
        return self.seen(), 0.0 if ashore else 1.0, ashore, self.age >= LENGTH, {}

    def seen(self) -> Any:
        """The ship's place, and the currents ahead of it."""
        ahead = self.currents[self.age : self.age + SIGHT].copy()
        ahead[0] = self.place
        return ahead


class Slow(Harbor):
    """Looks ahead in plain Python, as a first version of a simulator does."""

    courses = 60

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.simulate()
        return super().step(action)

    def simulate(self) -> float:
        """Sum over all courses of some steps."""
        total = 0.0
        for first in range(self.courses):
            for second in range(60):
                total += (first - second) * 1e-3
        return total


class Quicker(Slow):
    """Looks ahead twice as fast."""

    courses = Slow.courses // 2


class Logging(Harbor):
    """Writes down every step."""

    def __init__(self) -> None:
        super().__init__()
        self.log = logging.Logger("harbor", logging.DEBUG)
        self.file = tempfile.TemporaryFile("w")  # noqa: SIM115
        handler = logging.StreamHandler(self.file)
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        self.log.addHandler(handler)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        given = super().step(action)
        facts = {"age": self.age, "place": self.place, "seen": given[0].tolist()}
        for line in range(4):
            self.log.debug("step %d.%d %s", self.age, line, json.dumps(facts))
        return given


class Pilot(nn.Module):
    """A network that somebody trained elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.Sequential(
            nn.Linear(SIGHT, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)
        )

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """What each action is worth."""
        scores: torch.Tensor = self.layers(seen)
        return scores


class Asking(Harbor):
    """Another ship is steered by a network, which is asked in every step."""

    def __init__(self) -> None:
        super().__init__()
        self.pilot, self.other = Pilot(), 0.0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        with torch.no_grad():
            choice = int(self.pilot(torch.from_numpy(self.seen())).argmax())
        self.other += 0.4 * (choice - 1)
        return super().step(action)


class Copying(Harbor):
    """Keeps all of itself in a history, to be able to go back."""

    def __init__(self) -> None:
        super().__init__()
        self.charts = [{"depth": [float(i)] * 10, "name": str(i)} for i in range(20)]
        self.before: Any = None

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.before = copy.deepcopy(self.charts)
        return super().step(action)


class Sleepy(Harbor):
    """Waits for something outside."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time.sleep(0.001)
        return super().step(action)


class Tidy(Harbor):
    """Collects garbage in every step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.age % 8 == 0:
            gc.collect()
        return super().step(action)


class Charting(Harbor):
    """Makes its chart anew in every reset."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.chart = [[(x * y) % 7 for x in range(200)] for y in range(200)]
        return super().reset(seed=seed, options=options)


class Rereading(Harbor):
    """Reads its rules from a file in every step."""

    def __init__(self) -> None:
        super().__init__()
        self.file = tempfile.NamedTemporaryFile("w+", suffix=".json")  # noqa: SIM115
        json.dump({"draughts": [[1.5 + 0.1 * x for x in range(20)] for _ in range(30)]}, self.file)
        self.file.flush()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        with open(self.file.name) as file:  # noqa: PTH123
            self.rules = json.load(file)
        return super().step(action)


def make_sound() -> Harbor:
    """The game in which nothing is wrong."""
    return Harbor()


def make_slow() -> Slow:
    """A slow step."""
    return Slow()


def make_quicker() -> Quicker:
    """A step that takes half as long as the slow one."""
    return Quicker()


def make_logging() -> Logging:
    """A step that logs."""
    return Logging()


def make_asking() -> Asking:
    """A step that asks a network."""
    return Asking()


def make_copying() -> Copying:
    """A step that copies."""
    return Copying()


def make_sleepy() -> Sleepy:
    """A step that waits."""
    return Sleepy()


def make_tidy() -> Tidy:
    """A step that collects garbage."""
    return Tidy()


def make_charting() -> Charting:
    """A reset that takes long."""
    return Charting()


def make_rereading() -> Rereading:
    """A step that reads a file."""
    return Rereading()
