"""Points that are open in a gauge, as many at once as there is room for."""

from __future__ import annotations

from contextlib import suppress
from statistics import median
from typing import Protocol

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.machine import show_size
from sparring.speed.rounds import Reading
from sparring.speed.stand import Opened, UnfitError
from sparring.tuning.knobs import Point
from sparring.tuning.ratios import rate_of
from sparring.tuning.space import Space

OUT_OF_MEMORY = ("memory", "are free", "killed")
"""Words of refusals that another point's leaving may help."""


class Timer(Protocol):
    """What times settings: a gauge, or in tests a surface that is known."""

    @property
    def pid(self) -> int | None:
        """The process; another one has nothing open."""

    def open(self, name: str, config: TrainConfig, *, warm_up: int = 2) -> Opened:
        """Make and warm up."""

    def time(self, name: str, seconds: float, *, least: int = 1) -> Reading:
        """Play and learn for a while."""

    def shut(self, name: str) -> None:
        """Let go of it."""


class PassedOverError(Exception):
    """A point that cannot be timed, and why."""

    def __init__(self, why: str, *, memory: bool = False) -> None:
        super().__init__(why)
        self.memory = memory


class Stand:
    """Times points; opens them when they are first asked for, and shuts others if need be."""

    def __init__(self, gauge: Timer, space: Space, *, room: int = 0, warm_up: int = 1) -> None:
        """Take over a gauge in which nothing is open.

        room: bytes that all open points together may take, about. 0: as many as go well.
        """
        self.gauge, self.space, self.room, self.warm_up = gauge, space, room, warm_up
        self.open: dict[Point, Opened] = {}
        """The one that was timed longest ago first."""
        self.names: dict[Point, str] = {}
        self.round_s: dict[Point, float] = {}
        """Seconds of a round, of all that were ever timed."""
        self.overheads: list[float] = []
        """Seconds that opening took, besides the rounds that warmed up."""
        self.memory: dict[Point, int] = {}
        """About what each takes, of the process or of the GPU."""
        self.bare = 0
        """Bytes of the process without any point."""
        self.pid: int | None = None

    def time(self, point: Point, seconds: float) -> float:
        """Return decisions per second."""
        if self.gauge.pid != self.pid:
            self.open.clear()
        if point not in self.open:
            self._open(point)
        self.open[point] = self.open.pop(point)
        least = self.space.rounds(point)
        try:
            reading = self.gauge.time(self.names[point], seconds, least=least)
        except UnfitError as wrong:
            self._forget(point)
            raise PassedOverError(str(wrong), memory=is_memory(wrong)) from None
        first = point not in self.round_s
        self.round_s[point] = reading.seconds / len(reading.rounds)
        if first:
            opened = self.open[point].seconds - self.warm_up * self.round_s[point]
            self.overheads.append(max(opened, 0.0))
        self._weigh(point, reading)
        return rate_of(reading)

    def keep(self, *points: Point) -> None:
        """Shut all but these."""
        for point in [point for point in self.open if point not in points]:
            self._forget(point)

    def cost(self, point: Point, like: Point, seconds: float) -> float:
        """Guess how long a point takes that was never timed: opening it, and one timing.

        like: one that was, whose rounds are as long per row.
        """
        size = self.space.rows(point) / self.space.rows(like)
        one = self.round_s[like] * size
        opening = median(self.overheads) + self.warm_up * one
        return opening + max(seconds, one * self.space.rounds(point))

    def slice_cost(self, point: Point, seconds: float) -> float:
        """Seconds that one more timing of a point takes, with opening it where it is shut."""
        one = max(seconds, self.round_s[point] * self.space.rounds(point))
        if point in self.open:
            return one
        return one + median(self.overheads) + self.warm_up * self.round_s[point]

    def _open(self, point: Point) -> None:
        needed = self.space.bytes(point)
        while self.room and self.open and needed + self._taken() > self.room:
            self._forget(next(iter(self.open)))
        try:
            self._ask(point)
        except (UnfitError, ConfigError) as wrong:
            if not is_memory(wrong) or not self.open:
                raise PassedOverError(str(wrong), memory=is_memory(wrong)) from None
            self.keep()
            try:
                self._ask(point)
            except (UnfitError, ConfigError) as again:
                raise PassedOverError(str(again), memory=is_memory(again)) from None

    def _ask(self, point: Point) -> None:
        name = self.names.setdefault(point, f"point {len(self.names)}")
        try:
            timed = self.space.timed(point)
            self.open[point] = self.gauge.open(name, timed, warm_up=self.warm_up)
        finally:
            if self.gauge.pid != self.pid:  # it died, or was not there yet
                self.open = {kept: what for kept, what in self.open.items() if kept == point}
                self.pid = self.gauge.pid

    def _taken(self) -> int:
        return sum(self.space.bytes(point) for point in self.open)

    def _forget(self, point: Point) -> None:
        del self.open[point]
        if self.gauge.pid == self.pid:  # else it has gone with its process
            with suppress(UnfitError):
                self.gauge.shut(self.names[point])

    def _weigh(self, point: Point, reading: Reading) -> None:
        """Note what a point takes: on the GPU, or with a process of its own."""
        if point not in self.memory:
            grown = self.open[point].memory_bytes
            self.bare = self.bare or max(reading.memory_bytes - grown, 0)
            guess = self.space.bytes(point)
            self.memory[point] = reading.gpu_bytes or self.bare + max(grown, guess)
        most = self.space.most_bytes
        if most and self.memory.get(point, 0) > most:
            self._forget(point)
            told = show_size(self.memory[point])
            raise PassedOverError(f"took {told} of memory, at most {show_size(most)}", memory=True)


def is_memory(wrong: Exception) -> bool:
    """Whether something failed for want of memory."""
    return any(word in str(wrong) for word in OUT_OF_MEMORY)
