"""An environment that fails when it is told to, found by name from other processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

STAY, RAISE, HANG, DIE, SPEAK = range(5)


class Trouble(gymnasium.Env[Any, Any]):
    """Counts steps; other actions than STAY are faults. Cut after 12 steps."""

    observation_space = spaces.Box(-1e9, 1e9, (2,), np.float32)
    action_space = spaces.Discrete(5)
    speed = 1

    def __init__(self) -> None:
        self.number, self.age = 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.number, self.age = int(self.np_random.integers(1000)), 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if action == RAISE:
            raise ValueError("the simulator lost its way")
        if action == HANG:
            time.sleep(1000)
        if action == DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        if action == SPEAK:
            sys.stderr.write("a word of the simulator\n")
            sys.stderr.flush()
            os._exit(3)
        self.age += self.speed
        return self._seen(), 1.0, False, self.age >= 12, {}

    def _seen(self) -> Any:
        return np.array([self.number, self.age], np.float32)


class Unseeded(Trouble):
    """Cannot begin any more once it has run."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        if options.get("seed", 0) and options["seed"] > 1_000:
            raise RuntimeError("no second life")
        return super().reset(**options)


class Touchy(Trouble):
    """Dies of the first flags that it is told."""

    def set_config(self, *, speed: int, died: str) -> None:
        """Take flags; died: a file that says whether one of them has died already."""
        if not Path(died).exists():
            Path(died).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self.speed = speed


class Served(Trouble):
    """Has a simulator in a process of its own, which nobody ends; its number is observed."""

    def __init__(self) -> None:
        super().__init__()
        self.simulator = subprocess.Popen(["sleep", "1000"])
        pids = os.environ.get("SIMULATORS")
        if pids:
            with Path(pids).open("a") as file:
                file.write(f"{self.simulator.pid}\n")

    def _seen(self) -> Any:
        return np.array([self.simulator.pid, self.age], np.float32)


class Chatty(Trouble):
    """Writes a line in every step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        print("age", self.age, file=sys.stderr, flush=True)
        return super().step(action)


def make_chatty() -> Trouble:
    """Make one that talks."""
    return Chatty()


def make_touchy() -> Trouble:
    """Make one that dies of flags, once."""
    return Touchy()


def make_served() -> Trouble:
    """Make one with a simulator beside it."""
    return Served()


def make_trouble() -> Trouble:
    """Make one that fails when it is told to."""
    return Trouble()


def make_mortal() -> Trouble:
    """Make one that begins once, with a small seed."""
    return Unseeded()
