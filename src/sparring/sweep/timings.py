"""Timings of points in turn: how much faster one is than another, and how sure that is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Literal

from sparring.errors import ConfigError
from sparring.league.intervals import student_95
from sparring.machine import format_bytes
from sparring.speed.rounds import Measurement, steady
from sparring.speed.timer import OpenSessions, Timer, UnfitError, is_memory
from sparring.sweep.grid import Grid
from sparring.sweep.knobs import Point, Value

ENOUGH = 4
"""Turns that say themselves how much they vary."""
USUAL_NOISE, TAKEN_FOR = 0.05, 4.0
"""What a ratio of two timings varies by before anything is known, and for how many it counts."""


class Clock:
    """How much time is left."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.now, self.began = seconds, now, now()

    @property
    def gone(self) -> float:
        return self.now() - self.began

    @property
    def left(self) -> float:
        return self.seconds - self.gone


@dataclass
class Answer:
    """What came of a search from a preset: another point, or the preset itself."""

    preset: Point
    best: Point
    ended: Literal["done", "time", "interrupted"] = "done"
    seconds: float = 0.0
    """All of it, starting processes included."""

    @property
    def better(self) -> bool:
        return self.best != self.preset

    def name(self, settings: Mapping[str, Value]) -> str:
        """What differs from the preset, in words."""
        return Point(tuple(settings.items())).beside(self.preset) or "preset"

    @contextmanager
    def timed(self, clock: Clock) -> Iterator[None]:
        """Note how long a search took, and whether it was interrupted."""
        try:
            yield
        except BaseException:
            self.ended = "interrupted"
            raise
        finally:
            self.seconds = clock.gone

    def plain(self) -> dict[str, Any]:
        return {
            "better": self.better,
            "settings": dict(self.best),
            "beside_preset": self.best.beside(self.preset),
            "preset": dict(self.preset),
            "ended": self.ended,
            "seconds": round(self.seconds, 2),
        }


@dataclass(frozen=True)
class Gain:
    """A ratio minus one, with its 95 % interval."""

    value: float
    low: float
    high: float
    turns: int = 0
    """How often both were timed in turn."""

    @classmethod
    def of_logs(cls, middle: float, half: float, turns: int) -> Gain:
        """From the logarithm of a ratio, and half its interval."""
        ends = math.expm1(middle - half), math.expm1(middle + half)
        return cls(math.expm1(middle), *ends, turns)

    def __str__(self) -> str:
        return f"{self.value:+.0%} ({100 * self.low:.0f}..{100 * self.high:.0f})"

    def plain(self) -> dict[str, Any]:
        """As JSON has it; an end that nobody knows is null."""
        ends = {"low": self.low, "high": self.high}
        known = {name: round(end, 4) if -1 < end < 1e9 else None for name, end in ends.items()}
        return {"gain": {"value": round(self.value, 4), **known}, "turns": self.turns}


@dataclass
class Noise:
    """What ratios of timings vary by on this machine, learned from all that were made."""

    squares: float = USUAL_NOISE**2 * TAKEN_FOR
    free: float = TAKEN_FOR

    def learn(self, logs: Sequence[float]) -> None:
        mean = fmean(logs)
        self.squares += sum((one - mean) ** 2 for one in logs)
        self.free += len(logs) - 1

    def error(self, count: int) -> float:
        """The standard error of a mean of so many."""
        return math.sqrt(self.squares / self.free / count)


@dataclass(frozen=True)
class Raced:
    """A race against the best of that moment, in logarithms of rates."""

    before: float
    """Of that best over the preset."""
    variance: float
    """Of `before`."""
    mean: float
    """Of the challenger over that best."""
    error: float
    turns: int
    won: bool

    def gain(self, scale: float = 1.0) -> Gain:
        """The gain over the preset.

        scale: what the best came to in full, as a share of what the races on the way to it said.
        """
        middle = scale * self.before + (scale if self.won else 1.0) * self.mean
        half = 2 * math.hypot(scale * math.sqrt(self.variance), self.error)
        return Gain.of_logs(middle, half, self.turns)


def in_full(logs: Sequence[float], noise: Noise) -> Gain:
    """What timings in turn say, with their 95 % interval.

    From a few on they say themselves how much they vary; of fewer, all timings so far do.
    """
    known = Noise(0.0, 0.0) if len(logs) >= ENOUGH else Noise(noise.squares, noise.free)
    known.learn(logs)
    half = student_95(int(known.free)) * known.error(len(logs))
    return Gain.of_logs(fmean(logs), half, len(logs))


def rate_of(measurement: Measurement) -> float:
    """Decisions per second: the median round, or all together where they do not do the same.

    From replay with large batches, only every so manieth round makes a gradient step.
    """
    alike = len({one.optimizer_steps for one in measurement.rounds}) <= 1
    return measurement.decisions_per_s if alike else measurement.rate()


class PassedOverError(Exception):
    """A point that cannot be timed, and why."""

    def __init__(self, why: str, *, memory: bool) -> None:
        super().__init__(why)
        self.memory = memory


class Timings:
    """Times points of a grid, and knows what a timing costs."""

    def __init__(self, timer: Timer, grid: Grid, *, room: int = 0) -> None:
        """Take over a timer in which nothing is open.

        room: bytes that all open points together may take, about. 0: as many as go well.
        """
        self.sessions, self.grid = OpenSessions(timer, memory_budget=room), grid
        self.names: dict[Point, str] = {}
        self.round_s: dict[Point, float] = {}
        """Seconds of a round, of all that were ever timed."""
        self.overheads: list[float] = []
        """Seconds that opening took, besides the rounds that warmed up."""
        self.memory: dict[Point, int] = {}
        """About what each takes, of the process or of the GPU."""
        self.bare = 0
        """Bytes of the process without any point."""

    def time(self, point: Point, seconds: float) -> float:
        """Return decisions per second."""
        name = self.names.setdefault(point, f"point {len(self.names)}")
        config, least = steady(self.grid.config(point)), self.grid.rounds(point)
        needs = self.grid.bytes(point)
        try:
            measurement = self.sessions.time(name, config, seconds, min_rounds=least, needs=needs)
        except (UnfitError, ConfigError) as wrong:
            raise PassedOverError(str(wrong), memory=is_memory(wrong)) from None
        opened = self.sessions.infos[name]
        first = point not in self.round_s
        one = self.round_s[point] = measurement.seconds / len(measurement.rounds)
        if first:
            self.overheads.append(max(opened.seconds - self.sessions.warm_up * one, 0.0))
            self.bare = self.bare or max(measurement.memory_bytes - opened.memory_bytes, 0)
            grown = max(opened.memory_bytes, needs)
            self.memory[point] = measurement.gpu_bytes or self.bare + grown
        took, most = self.memory[point], self.grid.max_bytes
        if most and took > most:
            self.sessions.close(name)
            why = f"took {format_bytes(took)} of memory, at most {format_bytes(most)}"
            raise PassedOverError(why, memory=True)
        return rate_of(measurement)

    def in_turn(self, one: Point, two: Point, seconds: float, turn: int) -> tuple[float, float]:
        """Time both; who goes first changes from turn to turn."""
        if turn % 2 == 0:
            first = self.time(one, seconds)
            return first, self.time(two, seconds)
        second = self.time(two, seconds)
        return self.time(one, seconds), second

    def keep(self, *points: Point) -> None:
        self.sessions.keep_only(*(self.names[point] for point in points))

    def first_cost(self, point: Point, like: Point, seconds: float) -> float:
        """Guess how long a point takes that was never timed: opening it, and one timing.

        like: one that was, whose rounds are as long per row.
        """
        one = self.round_s[like] * self.grid.rows(point) / self.grid.rows(like)
        return self._opening(one) + max(seconds, one * self.grid.rounds(point))

    def cost(self, seconds: float, *points: Point) -> float:
        """Seconds that one more timing of points takes, with opening those that are shut."""
        shut = [point for point in points if self.names[point] not in self.sessions.infos]
        timed = (max(seconds, self.round_s[each] * self.grid.rounds(each)) for each in points)
        return sum(timed) + sum(self._opening(self.round_s[point]) for point in shut)

    def _opening(self, round_s: float) -> float:
        return median(self.overheads) + self.sessions.warm_up * round_s
