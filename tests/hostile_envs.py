"""Environments that do what none should, found by name from other processes.

Episodes last four steps. A fault happens at a call of a method, in a process's life or in every
episode; some only in measurements, whose seeds are far above those of training.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

LENGTH = 4
FIRST_SEED = 1_000_000_000
"""Of measurements, as in `sparring.league.custom_env`, whose import takes long."""


def leave() -> None:
    """Try to end the program, as a script does."""
    sys.exit(3)


def fail() -> None:
    """Raise an error."""
    raise ValueError("the simulator lost its way")


def vanish() -> None:
    """End the process without a word."""
    os._exit(5)


def crash() -> None:
    """End the process as a wrong pointer does."""
    os.kill(os.getpid(), signal.SIGSEGV)


def interrupt() -> None:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt


def sleep() -> None:
    """Never come back."""
    time.sleep(1000)


def hold() -> None:
    """Never come back from C code that holds Python's lock and hears no signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(1000)


def move() -> None:
    """Go to another folder."""
    os.chdir("/")


class Hostile(gymnasium.Env[Any, Any]):
    """Pays 1 for a step."""

    observation_space = spaces.Box(-1e9, 1e9, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(
        self,
        fault: Callable[[], None],
        method: str = "step",
        *,
        begins: int = 0,
        measured: bool = False,
        paid: float = 1.0,
    ) -> None:
        """Take a fault. begins: after how many calls of the method, of this env.

        measured: it happens in measurements alone.
        """
        self.fault, self.method, self.begins, self.paid = fault, method, begins, paid
        self.age, self.calls, self.measured, self.is_measured = 0, 0, measured, False

    def _called(self, method: str) -> None:
        if method != self.method or (self.measured and not self.is_measured):
            return
        self.calls += 1
        if self.calls > self.begins:
            self.fault()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.age = 0
        if seed is not None:
            self.is_measured = seed >= FIRST_SEED
        self._called("reset")
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.age += 1
        self._called("step")
        return self._seen(), self.paid, self.age >= LENGTH, False, {}

    def close(self) -> None:
        self._called("close")

    def _seen(self) -> Any:
        return np.array([self.age, 1.0], np.float32)


class Blind(Hostile):
    """Sees what is no number once it is old enough."""

    def __init__(self, age: int) -> None:
        super().__init__(int)
        self.sees_until = age

    def _seen(self) -> Any:
        return np.array([self.age if self.age < self.sees_until else np.nan, 1.0], np.float32)


make_blind = partial(Blind, 0)
make_blind_later = partial(Blind, 3)
make_moving = partial(Hostile, move)
make_leaving = partial(Hostile, leave, begins=20)
make_leaving_at_reset = partial(Hostile, leave, "reset", begins=5)
make_leaving_at_once = partial(Hostile, leave, "reset")
make_leaving_at_close = partial(Hostile, leave, "close")
make_failing = partial(Hostile, fail, begins=20)
make_always_failing = partial(Hostile, fail, begins=2)
make_interrupting = partial(Hostile, interrupt, begins=20)
make_stuck = partial(Hostile, hold)
make_rich = partial(Hostile, int, paid=1e30)

measure_leaving = partial(Hostile, leave, measured=True)
measure_failing = partial(Hostile, fail, measured=True)
measure_vanishing = partial(Hostile, vanish, measured=True)
measure_crashing = partial(Hostile, crash, measured=True)
measure_sleeping = partial(Hostile, sleep, measured=True)
measure_holding = partial(Hostile, hold, "reset", measured=True)


def leave_factory() -> None:
    """Make nothing, and try to end the program."""
    leave()


def measure_sleeping_vector() -> Any:
    """Make two that step together."""
    return gymnasium.vector.SyncVectorEnv([measure_sleeping] * 2)
