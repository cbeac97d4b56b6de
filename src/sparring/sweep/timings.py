"""Timings of candidates: how much faster one is than another, with intervals."""

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
from sparring.sweep.parameters import TuneCandidate, Value

ENOUGH = 4
"""Turns from which their own variance is used."""
USUAL_NOISE, TAKEN_FOR = 0.05, 4.0
"""Prior standard deviation of a log ratio of timings, and its weight in turns."""


class SearchBudget:
    """Time limit of a search."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self.total_s, self.now, self.start = seconds, now, now()

    @property
    def elapsed_s(self) -> float:
        return self.now() - self.start

    @property
    def left_s(self) -> float:
        return self.total_s - self.elapsed_s


@dataclass
class TuneResult:
    """Result of tune: the preset, or another candidate."""

    preset: TuneCandidate
    best: TuneCandidate
    ended: Literal["done", "time", "interrupted"] = "done"
    seconds: float = 0.0
    """Total time, including the start of processes."""

    @property
    def better(self) -> bool:
        return self.best != self.preset

    def name(self, settings: Mapping[str, Value]) -> str:
        return TuneCandidate(tuple(settings.items())).describe_changes(self.preset) or "preset"

    @contextmanager
    def timed(self, budget: SearchBudget) -> Iterator[None]:
        """Record the time of a search, and whether it was interrupted."""
        try:
            yield
        except BaseException:
            self.ended = "interrupted"
            raise
        finally:
            self.seconds = budget.elapsed_s

    def plain(self) -> dict[str, Any]:
        return {
            "better": self.better,
            "settings": dict(self.best),
            "changes": self.best.describe_changes(self.preset),
            "preset": dict(self.preset),
            "ended": self.ended,
            "seconds": round(self.seconds, 2),
        }


@dataclass(frozen=True)
class Gain:
    """Relative gain with its 95 % interval."""

    value: float
    low: float
    high: float
    turns: int = 0
    """Number of alternate timings."""

    @classmethod
    def of_logs(cls, middle: float, half: float, turns: int) -> Gain:
        """Make a gain from a log ratio and half its interval."""
        ends = math.expm1(middle - half), math.expm1(middle + half)
        return cls(math.expm1(middle), *ends, turns)

    def __str__(self) -> str:
        return f"{self.value:+.0%} ({100 * self.low:.0f}..{100 * self.high:.0f})"

    def plain(self) -> dict[str, Any]:
        """Return JSON values; an infinite end is null."""
        ends = {"low": self.low, "high": self.high}
        known = {name: round(end, 4) if -1 < end < 1e9 else None for name, end in ends.items()}
        return {"gain": {"value": round(self.value, 4), **known}, "turns": self.turns}


@dataclass
class Noise:
    """Running variance of log ratios of timings on this machine."""

    squares: float = USUAL_NOISE**2 * TAKEN_FOR
    free: float = TAKEN_FOR

    def learn(self, logs: Sequence[float]) -> None:
        mean = fmean(logs)
        self.squares += sum((one - mean) ** 2 for one in logs)
        self.free += len(logs) - 1

    def error(self, count: int) -> float:
        """Return the standard error of a mean of `count` ratios."""
        return math.sqrt(self.squares / self.free / count)


@dataclass(frozen=True)
class RaceResult:
    """A race against the best of that time, in log rates."""

    before: float
    """Log gain of that best over the preset."""
    variance: float
    """Variance of `before`."""
    mean: float
    """Log gain of the challenger over that best."""
    error: float
    turns: int
    won: bool

    def gain(self, scale: float = 1.0) -> Gain:
        """Return the gain over the preset.

        scale: confirmed log gain of the best, relative to that of the races.
        """
        middle = scale * self.before + (scale if self.won else 1.0) * self.mean
        half = 2 * math.hypot(scale * math.sqrt(self.variance), self.error)
        return Gain.of_logs(middle, half, self.turns)


def summarize_races(logs: Sequence[float], noise: Noise) -> Gain:
    """Return the mean gain of alternate timings with its 95 % interval.

    Few turns use the variance of all timings so far.
    """
    known = Noise(0.0, 0.0) if len(logs) >= ENOUGH else Noise(noise.squares, noise.free)
    known.learn(logs)
    half = student_95(int(known.free)) * known.error(len(logs))
    return Gain.of_logs(fmean(logs), half, len(logs))


def rate_of(measurement: Measurement) -> float:
    """Return decisions per second: of the median round, or of all rounds if they differ.

    From replay with large batches, only some rounds have a gradient step.
    """
    alike = len({one.optimizer_steps for one in measurement.rounds}) <= 1
    return measurement.decisions_per_s if alike else measurement.rate()


class UntimedError(Exception):
    """A candidate that cannot be timed."""

    def __init__(self, why: str, *, memory: bool) -> None:
        super().__init__(why)
        self.memory = memory


class Timings:
    """Times candidates, and estimates the cost of a timing."""

    def __init__(self, timer: Timer, grid: Grid, *, room: int = 0) -> None:
        """Use a timer in which nothing is open.

        room: maximum bytes of all open candidates together; 0: until memory runs out.
        """
        self.sessions, self.grid = OpenSessions(timer, memory_budget=room), grid
        self.names: dict[TuneCandidate, str] = {}
        self.round_s: dict[TuneCandidate, float] = {}
        """Seconds of a round by candidate."""
        self.overheads: list[float] = []
        """Seconds to open a candidate, without warm-up rounds."""
        self.memory: dict[TuneCandidate, int] = {}
        """Bytes by candidate, of the process or of the GPU."""
        self.bare = 0
        """Bytes of the process without any candidate."""

    def time(self, point: TuneCandidate, seconds: float) -> float:
        """Return decisions per second."""
        name = self.names.setdefault(point, f"point {len(self.names)}")
        config, least = steady(self.grid.config(point)), self.grid.rounds(point)
        needs = self.grid.bytes(point)
        try:
            measurement = self.sessions.time(name, config, seconds, min_rounds=least, needs=needs)
        except (UnfitError, ConfigError) as error:
            raise UntimedError(str(error), memory=is_memory(error)) from None
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
            raise UntimedError(why, memory=True)
        return rate_of(measurement)

    def in_turn(
        self, one: TuneCandidate, two: TuneCandidate, seconds: float, turn: int
    ) -> tuple[float, float]:
        """Time both candidates; the order alternates from turn to turn."""
        if turn % 2 == 0:
            first = self.time(one, seconds)
            return first, self.time(two, seconds)
        second = self.time(two, seconds)
        return self.time(one, seconds), second

    def keep(self, *points: TuneCandidate) -> None:
        self.sessions.keep_only(*(self.names[point] for point in points))

    def first_cost(self, point: TuneCandidate, like: TuneCandidate, seconds: float) -> float:
        """Estimate the seconds to open and time a new candidate.

        like: a timed candidate with rounds of the same length per row.
        """
        one = self.round_s[like] * self.grid.rows(point) / self.grid.rows(like)
        return self._opening(one) + max(seconds, one * self.grid.rounds(point))

    def cost(self, seconds: float, *points: TuneCandidate) -> float:
        """Estimate the seconds of one more timing of candidates, opening closed ones."""
        shut = [point for point in points if self.names[point] not in self.sessions.infos]
        timed = (max(seconds, self.round_s[each] * self.grid.rounds(each)) for each in points)
        return sum(timed) + sum(self._opening(self.round_s[point]) for point in shut)

    def _opening(self, round_s: float) -> float:
        return median(self.overheads) + self.sessions.warm_up * round_s
