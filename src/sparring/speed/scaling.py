"""Speed by number of games, threads and workers: what is measured, and what to take then."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from statistics import mean, median, stdev

from sparring.config import TrainConfig
from sparring.draw.charts.axes import label
from sparring.errors import ConfigError
from sparring.league.intervals import student_95
from sparring.speed.rounds import Measurement
from sparring.speed.timer import OpenSessions, SessionInfo, UnfitError
from sparring.training.planning.settings import merged

AROUND = (0.25, 0.5, 1, 2, 4)
"""Numbers of games on a CPU, as shares of the preset's."""
AROUND_OWN = (0.5, 1, 2)
"""The same of an environment of somebody's own."""
ON_GPU = (4_096, 16_384, 65_536, 262_144)
MAX_POINTS = 16
"""Beyond these, games are varied with the usual threads, and threads with the usual games."""
MIN_PASSES = 3
LITTLE = 0.03
"""Gains below this are not worth more cores or larger rollouts."""
WIDE = 1.5
"""Intervals whose ends are further apart say next to nothing."""
NOISY = "the passes differ a lot: measure for longer (--seconds), with nothing else on the cores"


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
        return self.threads + self.workers

    def of(self, config: TrainConfig) -> TrainConfig:
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
    opened: SessionInfo | None = None
    measurements: list[Measurement] = field(default_factory=list)
    why: str = ""
    """Why there is nothing: it was refused, or memory ran out."""

    @property
    def rates(self) -> list[float]:
        return [measurement.rate() for measurement in self.measurements]

    @property
    def rate(self) -> float:
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
    if len(set(found)) > MAX_POINTS and not (games and threads):
        found = [point for point in found if crosses(point, usual)]
    return sorted({*found, usual}, key=lambda point: (point.games, point.threads, point.workers))


def crosses(point: Point, usual: Point) -> bool:
    """Whether a point has either the usual games, or all else as usual."""
    same = point.threads == usual.threads, point.workers == usual.workers
    return all(same) or (point.games == usual.games and any(same))


def measure_points(
    sessions: OpenSessions,
    config: TrainConfig,
    rows: Sequence[Row],
    lasting: tuple[float, int],
    told: Callable[[str], None],
) -> None:
    """Time all points in turn, back and forth, and note it in their rows.

    lasting: seconds in all, and passes; where rounds are long, there are fewer passes, but no
    fewer than an interval needs. told: is called before every timing.
    """
    seconds, passes = lasting
    each = seconds / passes / max(len(rows), 1)
    told("warming up")  # or the first point seems to need what is loaded once
    with suppress(ConfigError, UnfitError):  # said when it is measured
        sessions.time("", rows[0].point.of(config), 0.0)
        sessions.close("")
    for number in range(passes):
        gone = sum(measurement.seconds for row in rows for measurement in row.measurements)
        if number >= MIN_PASSES and gone >= seconds:
            break
        for row in rows[:: 1 if number % 2 == 0 else -1]:
            name = str(row.point)
            told(f"pass {number + 1} of {passes}: {name}")
            if row.why:
                continue
            try:
                row.measurements.append(sessions.time(name, row.point.of(config), each))
                row.opened = row.opened or sessions.infos[name]
            except (ConfigError, UnfitError) as wrong:
                row.why = str(wrong)
    sessions.keep_only()


@dataclass(frozen=True)
class Ratio:
    """How much faster one point is than another, pass by pass, with its 95 % interval."""

    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        """As a gain in percent."""
        if self.low is None or self.high is None:
            return f"{self.value - 1:+.0%}"
        return f"{self.value - 1:+.0%} ({self.low - 1:+.0%}..{self.high - 1:+.0%})"

    @property
    def told(self) -> bool:
        return self.low is not None and self.low > 1

    @property
    def wide(self) -> bool:
        """Whether it says next to nothing."""
        return self.low is None or self.high is None or self.high > WIDE * self.low


def ratio(one: Row, other: Row) -> Ratio:
    """Hold two points against each other within every pass, so that a busy moment meets both."""
    logs = [math.log(a / b) for a, b in zip(one.rates, other.rates, strict=False)]
    middle = mean(logs)
    if len(logs) < 2:
        return Ratio(math.exp(middle))
    half = student_95(len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def advise(rows: Sequence[Row], usual: Point) -> tuple[Point | None, str]:
    """Return which point to take, and why: fewest cores and games, and nearly the fastest."""
    fine = [row for row in rows if row.measurements and not row.why]
    if not fine:
        return None, "nothing could be measured, so there is nothing to advise"
    best = max(fine, key=lambda row: row.rate)
    near = [row for row in fine if ratio(best, row).value < 1 + LITTLE]
    take = min(near, key=lambda row: (row.point.cores, row.point.games))
    known = next((row for row in fine if row.point == usual), None)
    if known is not None and not worth_it(take, known):
        take = known
    word = "keep" if take is known else "take"
    told = f"{word} {take.point}: {label(take.rate, 'rate')} decisions/s"
    parts = [told + against_usual(take, known, best, usual), more_games(take, fine)]
    parts += [NOISY] if any(ratio(row, take).wide for row in fine if row is not take) else []
    return take.point, "; ".join(parts)


def worth_it(row: Row, known: Row) -> bool:
    """Whether a point is faster than the usual one beyond the noise, or as fast on fewer cores."""
    found = ratio(row, known)
    if row.point.cores < known.point.cores and found.low is not None:
        return found.low > 1 - LITTLE
    return found.told


def against_usual(take: Row, known: Row | None, best: Row, usual: Point) -> str:
    if known is None:
        return f" (the preset's {usual} were not measured)"
    if take is known:
        if best is known:
            return ", the preset, and nothing that was measured is faster"
        gain = ratio(best, known)
        noise = "" if gain.told else ", which is within the noise"
        return f", the preset; the fastest, {best.point}, brings {gain}{noise}"
    gain = ratio(take, known)
    if gain.told:
        return f", {gain} over the preset's {usual}"
    return f", {gain} to the preset's {usual}, on fewer cores"


def more_games(take: Row, fine: Sequence[Row]) -> str:
    same = [
        row
        for row in fine
        if row.point.games > take.point.games
        and (row.point.threads, row.point.workers) == (take.point.threads, take.point.workers)
    ]
    if not same:
        return "more games were not measured there (--games)"
    gain = max((ratio(row, take) for row in same), key=lambda found: found.value)
    if gain.value < 1 + LITTLE:
        return f"more games bring less than {LITTLE:.0%}"
    return f"more games bring {gain}{'' if gain.told else ', which is within the noise'}"
