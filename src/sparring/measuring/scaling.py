"""Speed by number of games, threads and workers: what is measured, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from statistics import median

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.measuring.gauge import Gauge, UnfitError
from sparring.measuring.reading import Opened, Reading
from sparring.training.planning.settings import merged

AROUND = (0.25, 0.5, 1, 2, 4)
"""Numbers of games on a CPU, as shares of the preset's."""
AROUND_OWN = (0.5, 1, 2)
"""The same of an environment of somebody's own."""
ON_GPU = (4_096, 16_384, 65_536, 262_144)
MOST_POINTS = 16
"""Beyond these, games are varied with the usual threads, and threads with the usual games."""
LEAST_PASSES = 3
WARM_UP = 1
"""Rounds; those of many games are long."""
ROOM = 4
"""What was opened stays so while so many times as much memory is free."""


@dataclass(frozen=True, order=True)
class Point:
    """Numbers that are measured together."""

    threads: int
    workers: int
    games: int

    def __str__(self) -> str:
        where = f"{self.threads} thread{'s' * (self.threads != 1)}"
        if self.workers:
            where += f" and {self.workers} worker{'s' * (self.workers != 1)}"
        return f"{self.games:,} games on {where}"

    @property
    def cores(self) -> int:
        """How many cores it asks for."""
        return self.threads + self.workers

    def of(self, config: TrainConfig) -> TrainConfig:
        """Return settings with these numbers."""
        changes = {
            "threads": self.threads,
            "collect": {"games": self.games},
            "workers": str(self.workers),
        }
        changed: TrainConfig = merged(config, changes, "bench scaling")
        return changed


@dataclass
class Row:
    """What was measured at a point, pass by pass."""

    point: Point
    opened: Opened | None = None
    readings: list[Reading] = field(default_factory=list)
    why: str = ""
    """Why there is nothing: it was refused, or memory ran out."""

    @property
    def rates(self) -> list[float]:
        """Decisions per second of every pass."""
        return [sum(one.decisions for one in r.rounds) / r.seconds for r in self.readings]

    @property
    def sample_rates(self) -> list[float]:
        """Samples per second of every pass."""
        return [sum(one.samples for one in r.rounds) / r.seconds for r in self.readings]

    @property
    def rate(self) -> float:
        """The median of the passes."""
        return median(self.rates)


def thread_counts(most: int) -> list[int]:
    """Return 1, 2, 4 and so on up to the number of cores."""
    return sorted({min(2**power, most) for power in range(most.bit_length() + 1)})


def points(
    usual: Point,
    *,
    games: Sequence[int] = (),
    threads: Sequence[int] = (),
    workers: Sequence[int] = (),
    cores: int,
    gpu: bool = False,
    own: bool = False,
) -> list[Point]:
    """Return what is measured, the smallest first; numbers that are not given are chosen.

    usual: as the preset would have it, always among them. own: the games are an
    environment of somebody's own, stepped by workers rather than on threads.
    """
    around = AROUND_OWN if own else AROUND
    near = [max(round(usual.games * share), 1) for share in around]
    all_games = games or ([usual.games, *ON_GPU] if gpu else near)
    all_threads = threads or ([usual.threads] if gpu or own else thread_counts(cores))
    all_workers = workers or ([0, *thread_counts(cores)] if own else [usual.workers])
    found = [Point(t, w, g) for t, w, g in product(all_threads, all_workers, all_games)]
    if len(set(found)) > MOST_POINTS and not (games and threads):
        found = [point for point in found if crosses(point, usual)]
    return sorted({*found, usual}, key=lambda point: (point.games, point.threads, point.workers))


def crosses(point: Point, usual: Point) -> bool:
    """Whether a point has either the usual games, or all else as usual."""
    same = point.threads == usual.threads, point.workers == usual.workers
    return all(same) or (point.games == usual.games and any(same))


class Scaling:
    """Measures points in turn, as many as have room open at once."""

    def __init__(self, gauge: Gauge, config: TrainConfig, rows: Sequence[Row]) -> None:
        """Prepare to measure; config: the settings in which only the numbers change."""
        self.gauge, self.config, self.rows = gauge, config, rows
        self.open: list[str] = []
        """Names of what is open, the one that was opened first in front."""

    def measure(
        self, seconds: float, passes: int, told: Callable[[str], None] = lambda _: None
    ) -> None:
        """Measure everything so often in turn; every second time from behind.

        A point that is refused or has no room says why, and the others go on. Where rounds are
        long, there are fewer passes, but no fewer than an interval needs.
        """
        each = seconds / passes / max(len(self.rows), 1)
        self._warm_up(told)
        for number in range(passes):
            gone = sum(reading.seconds for row in self.rows for reading in row.readings)
            if number >= LEAST_PASSES and gone >= seconds:
                break
            for row in self.rows[:: 1 if number % 2 == 0 else -1]:
                told(f"pass {number + 1} of {passes}: {row.point}")
                if not row.why:
                    self._measure(row, each)
        for name in list(self.open):
            self._shut(name)

    def _warm_up(self, told: Callable[[str], None]) -> None:
        """Have everything loaded that is loaded once, or the first point seems to need it."""
        told("warming up")
        with suppress(ConfigError, UnfitError):  # said when it is measured
            self.gauge.open("", self.rows[0].point.of(self.config), warm_up=WARM_UP)
            self.gauge.shut("")

    def _measure(self, row: Row, seconds: float) -> None:
        name = str(row.point)
        try:
            try:
                if name not in self.open:
                    self._open(row)
                row.readings.append(self.gauge.time(name, seconds))
            except UnfitError:
                if self.open in ([], [name]):
                    raise
                self._shut_all()  # there may be room for it alone
                self._open(row)
                row.readings.append(self.gauge.time(name, seconds))
        except (ConfigError, UnfitError) as wrong:
            row.why = str(wrong)
            self._shut_all()

    def _open(self, row: Row) -> None:
        name = str(row.point)
        opened = self.gauge.open(name, row.point.of(self.config), warm_up=WARM_UP)
        self.open.append(name)
        row.opened = row.opened or opened
        if is_tight(opened):
            for other in self.open[:-1]:
                self._shut(other)

    def _shut_all(self) -> None:
        for name in list(self.open):
            self._shut(name)

    def _shut(self, name: str) -> None:
        if name not in self.open:
            return
        self.open.remove(name)
        try:
            self.gauge.shut(name)
        except UnfitError:  # the process has died, and everything with it
            self.open.clear()


def is_tight(opened: Opened) -> bool:
    """Whether there is little room for others beside what was opened."""
    gpu = opened.gpu_bytes and opened.gpu_free_bytes < ROOM * opened.gpu_bytes
    return bool(gpu) or opened.free_bytes < ROOM * opened.memory_bytes
