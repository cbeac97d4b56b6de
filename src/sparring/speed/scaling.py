"""Speed by number of games, threads and workers: the grid, its timing, and the advice."""

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
from sparring.machine import thread_counts
from sparring.speed.rounds import Measurement
from sparring.speed.timer import OpenSessions, SessionInfo, UnfitError
from sparring.training.planning.settings import merged

AROUND = (0.25, 0.5, 1, 2, 4)
"""Numbers of games on a CPU, as multiples of the preset's."""
AROUND_CUSTOM = (0.5, 1, 2)
"""The same for a custom environment."""
ON_GPU = (4_096, 16_384, 65_536, 262_144)
MAX_POINTS = 16
"""With more points, games vary at the preset's threads, and threads at the preset's games."""
MIN_PASSES = 3
MIN_GAIN = 0.03
"""Gains below this are not worth more cores or larger rollouts."""
WIDE = 1.5
"""An interval is too wide if its ends differ by more than this factor."""
NOISY = "the passes differ a lot: measure for longer (--seconds), with nothing else on the cores"


@dataclass(frozen=True, order=True)
class ScalingPoint:
    """One combination of threads, workers and games."""

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

    def apply(self, config: TrainConfig) -> TrainConfig:
        changes = {
            "threads": self.threads,
            "collect": {"games": self.games},
            "workers": str(self.workers),
        }
        changed: TrainConfig = merged(config, changes, "bench scaling")
        return changed


@dataclass
class ScalingRow:
    """Measurements of a point, one per pass."""

    point: ScalingPoint
    session: SessionInfo | None = None
    measurements: list[Measurement] = field(default_factory=list)
    why: str = ""
    """Why it was not measured: refused, or out of memory."""

    @property
    def rates(self) -> list[float]:
        return [measurement.rate() for measurement in self.measurements]

    @property
    def rate(self) -> float:
        return median(self.rates)


def points(
    usual: ScalingPoint,
    *,
    games: Sequence[int] = (),
    threads: Sequence[int] = (),
    workers: Sequence[int] = (),
    cores: int,
    gpu: bool = False,
    custom: bool = False,
) -> list[ScalingPoint]:
    """Return the points to measure, smallest first; ranges that are not given are chosen.

    usual: the preset's point, which is always measured. custom: a custom environment, stepped by
    workers rather than on threads.
    """
    around = AROUND_CUSTOM if custom else AROUND
    near = [max(round(usual.games * share), 1) for share in around]
    all_games = games or ([usual.games, *ON_GPU] if gpu else near)
    all_threads = threads or ([usual.threads] if gpu or custom else thread_counts(cores))
    all_workers = workers or ([0, *thread_counts(cores)] if custom else [usual.workers])
    found = [ScalingPoint(t, w, g) for t, w, g in product(all_threads, all_workers, all_games)]
    if len(set(found)) > MAX_POINTS and not (games and threads):
        found = [point for point in found if crosses(point, usual)]
    return sorted({*found, usual}, key=lambda point: (point.games, point.threads, point.workers))


def crosses(point: ScalingPoint, usual: ScalingPoint) -> bool:
    """Whether a point differs from the usual one in games alone, or in one other number."""
    same = point.threads == usual.threads, point.workers == usual.workers
    return all(same) or (point.games == usual.games and any(same))


def measure_points(
    sessions: OpenSessions,
    config: TrainConfig,
    rows: Sequence[ScalingRow],
    duration: tuple[float, int],
    echo: Callable[[str], None],
) -> None:
    """Time all points in turn, back and forth, and add the measurements to the rows.

    duration: seconds in all, and passes. Long rounds get fewer passes, but no fewer than an
    interval needs. echo: called before every timing.
    """
    seconds, passes = duration
    each = seconds / passes / max(len(rows), 1)
    echo("warming up")  # or the first point would pay for what is loaded once
    with suppress(ConfigError, UnfitError):  # reported when it is measured
        sessions.time("", rows[0].point.apply(config), 0.0)
        sessions.close("")
    for number in range(passes):
        gone = sum(measurement.seconds for row in rows for measurement in row.measurements)
        if number >= MIN_PASSES and gone >= seconds:
            break
        for row in rows[:: 1 if number % 2 == 0 else -1]:
            name = str(row.point)
            echo(f"pass {number + 1} of {passes}: {name}")
            if row.why:
                continue
            try:
                row.measurements.append(sessions.time(name, row.point.apply(config), each))
                row.session = row.session or sessions.infos[name]
            except (ConfigError, UnfitError) as error:
                row.why = str(error)
    sessions.keep_only()


@dataclass(frozen=True)
class Ratio:
    """Speed of one point relative to another, with its 95 % interval."""

    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        """As a gain in percent."""
        if self.low is None or self.high is None:
            return f"{self.value - 1:+.0%}"
        return f"{self.value - 1:+.0%} ({self.low - 1:+.0%}..{self.high - 1:+.0%})"

    @property
    def is_faster(self) -> bool:
        return self.low is not None and self.low > 1

    @property
    def is_wide(self) -> bool:
        return self.low is None or self.high is None or self.high > WIDE * self.low


def ratio(one: ScalingRow, other: ScalingRow) -> Ratio:
    """Compare two points within every pass, so that load on the machine affects both."""
    logs = [math.log(a / b) for a, b in zip(one.rates, other.rates, strict=False)]
    middle = mean(logs)
    if len(logs) < 2:
        return Ratio(math.exp(middle))
    half = student_95(len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def advise(rows: Sequence[ScalingRow], usual: ScalingPoint) -> tuple[ScalingPoint | None, str]:
    """Return the recommended point, nearly the fastest on the fewest cores, and the reason."""
    fine = [row for row in rows if row.measurements and not row.why]
    if not fine:
        return None, "nothing could be measured, so there is nothing to advise"
    best = max(fine, key=lambda row: row.rate)
    near = [row for row in fine if ratio(best, row).value < 1 + MIN_GAIN]
    take = min(near, key=lambda row: (row.point.cores, row.point.games))
    preset = next((row for row in fine if row.point == usual), None)
    if preset is not None and not is_better(take, preset):
        take = preset
    verb = "keep" if take is preset else "take"
    text = f"{verb} {take.point}: {label(take.rate, 'rate')} decisions/s"
    parts = [text + against_preset(take, preset, best, usual), more_games(take, fine)]
    parts += [NOISY] if any(ratio(row, take).is_wide for row in fine if row is not take) else []
    return take.point, "; ".join(parts)


def is_better(row: ScalingRow, preset: ScalingRow) -> bool:
    """Whether a point is faster than the preset beyond the noise, or as fast on fewer cores."""
    gain = ratio(row, preset)
    if row.point.cores < preset.point.cores and gain.low is not None:
        return gain.low > 1 - MIN_GAIN
    return gain.is_faster


def against_preset(
    take: ScalingRow, preset: ScalingRow | None, best: ScalingRow, usual: ScalingPoint
) -> str:
    if preset is None:
        return f" (the preset's {usual} were not measured)"
    if take is preset:
        if best is preset:
            return ", the preset, and nothing that was measured is faster"
        gain = ratio(best, preset)
        noise = "" if gain.is_faster else ", which is within the noise"
        return f", the preset; the fastest, {best.point}, gains {gain}{noise}"
    gain = ratio(take, preset)
    if gain.is_faster:
        return f", {gain} over the preset's {usual}"
    return f", {gain} to the preset's {usual}, on fewer cores"


def more_games(take: ScalingRow, fine: Sequence[ScalingRow]) -> str:
    same = [
        row
        for row in fine
        if row.point.games > take.point.games
        and (row.point.threads, row.point.workers) == (take.point.threads, take.point.workers)
    ]
    if not same:
        return "more games were not measured there (--games)"
    gain = max((ratio(row, take) for row in same), key=lambda found: found.value)
    if gain.value < 1 + MIN_GAIN:
        return f"more games gain less than {MIN_GAIN:.0%}"
    return f"more games gain {gain}{'' if gain.is_faster else ', which is within the noise'}"
