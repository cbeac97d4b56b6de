"""What other programs want of the cores while a run trains."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from sparring.machine import cores
from sparring.usage import Usage, below, usage

EVERY_S = 5.0
"""Looking takes some milliseconds."""
NOTICED = 0.5
"""Cores that others want, below which nobody minds."""
FULL = 0.9
"""Share of the cores that are busy, from which on somebody waits for one."""


@dataclass(frozen=True)
class Crowd:
    """Programs of somebody else's on the same cores."""

    wanted: float
    """Cores."""
    cores: int

    @property
    def words(self) -> str:
        """As a line has it."""
        return f"other programs want {self.wanted:.1f} of {self.cores} cores"


def crowd_of(own: float, others: float, there: int) -> Crowd | None:
    """The crowd on some cores, None where there is room for everybody. own, others: in cores."""
    crowded = others >= NOTICED and own + others >= FULL * there
    return Crowd(others, there) if crowded else None


def own_usage() -> Usage:
    """What this process and all that it has started have used, and everybody."""
    return usage([os.getpid(), *below()])


class Beside:
    """Looks now and then at what others use."""

    def __init__(
        self,
        look: Callable[[], Usage] = own_usage,
        now: Callable[[], float] = time.monotonic,
        *,
        there: int = 0,
    ) -> None:
        """Begin now. there: cores, 0 for all that this process may use."""
        self._look, self._now, self._cores = look, now, there or cores()
        self._at, self._before = now(), look()
        self._crowd: Crowd | None = None

    def crowd(self) -> Crowd | None:
        """Who was there in the last stretch of `EVERY_S` seconds."""
        seconds = self._now() - self._at
        if seconds >= EVERY_S:
            after, before = self._look(), self._before
            self._crowd = crowd_of(*after.cores_since(before, seconds), self._cores)
            self._at, self._before = self._at + seconds, after
        return self._crowd
