"""Time to a strength: short trainings, of which the slow ones are given up early.

The preset trains first and sets the target. Its neighbors then get a short time each, the better
half of them a longer one, and the last one left trains to the target with two seeds, like the
preset. All have the schedules of one and the same training, and are stopped on the way.
"""

from __future__ import annotations

import math
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import SparringError
from sparring.pools.custom.cache import is_custom
from sparring.sweep.grid import Grid
from sparring.sweep.knobs import Point
from sparring.sweep.timings import Answer, Clock
from sparring.sweep.training import DIVERGED_WORDS, Watch, reason
from sparring.sweep.trials import DONE, STRENGTH, Job, Trial, failed
from sparring.training.planning.settings import replace_budget
from sparring.training.train import train_with

QUARTER, RUNGS = 0.25, 0.125
"""Shares of the time: in which the preset sets the target, and that the rungs get together."""
SHORTEST_S = 6.0
"""A training that is shorter has hardly been measured."""
MAX_CANDIDATES, SEEDS = 8, 2
EVALUATIONS = 20
"""Of a whole training; each is a chance to see that the target was reached."""
GAMES = 512


Train = Callable[[Point, int, float, float | None], Trial]
"""Trains a point with a seed for so many seconds, or until a strength is reached."""


class StoppedError(Exception):
    """A signal came while a training was going on."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.number = signal.Signals[name]


@dataclass(frozen=True)
class Trainer:
    """Trains points in this process, in folders that go when they are over."""

    grid: Grid
    seconds: float
    """Of the training whose schedules all of them have; they are stopped on the way."""

    def __call__(self, point: Point, seed: int, seconds: float, target: float | None) -> Trial:
        """Train until a strength is reached, or for so many seconds by the clock on the wall."""
        until, config = time.monotonic() + seconds, self.config(point, seed)

        def enough(_number: int) -> str:
            last = watch.curves[0][-1:]
            reached = target is not None and any(value >= target for _, _, value in last)
            return "it is over" if reached or time.monotonic() > until else ""

        with tempfile.TemporaryDirectory(prefix="sparring-tune-") as folder:
            job = Job(Trial(0, point, seed=seed), replace(config, runs=folder, name="trial"))
            watch = Watch([job], STRENGTH, lambda _number, _point: None, enough)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of short trainings, said again and again
                    agent = train_with(job.config, quiet=True, callbacks=watch.callbacks)
            except (SparringError, MemoryError) as wrong:
                return failed(job.trial, reason(wrong))
        if agent.ended.startswith("SIG"):
            raise StoppedError(agent.ended)
        trained, _ = watch.last(0)
        why = DIVERGED_WORDS if watch.diverged else ""
        curve = tuple(watch.curves[0])
        return replace(job.trial, state=DONE, curve=curve, seconds=trained, why=why)

    def config(self, point: Point, seed: int) -> TrainConfig:
        """The settings of a training that is measured often and leaves nothing behind."""
        config = self.grid.config(point)
        games = config.eval.games if is_custom(self.grid.rules) else min(config.eval.games, GAMES)
        every = self.seconds / EVALUATIONS
        return replace(
            replace_budget(config, {"minutes": 1.0}),
            seed=seed,
            minutes=self.seconds / 60,
            eval=replace(config.eval, every_s=every, every_decisions=0, games=games),
            checkpoint_every_s=self.seconds,
            checkpoint_every_decisions=0,
            tensorboard=False,
            wandb=False,
            csv=False,
            episodes_csv=False,
        )


def reached(trial: Trial, target: float) -> float | None:
    """Seconds of the first checkpoint that was as strong."""
    return next((at for at, _, strength in trial.curve if strength >= target), None)


@dataclass
class Found(Answer):
    """What came of it."""

    target: float = math.nan
    given: bool = False
    """Somebody named the target."""
    trials: list[Trial] = field(default_factory=list)
    finalist: Point | None = None
    """Whoever met the preset with several seeds; the best, if it was faster."""

    def last(self, point: Point) -> list[Trial]:
        """The last training of a point with each seed."""
        found = {t.seed: t for t in self.trials if t.settings == point and not t.why}
        return list(found.values())

    def times(self, point: Point) -> list[float | None]:
        """Seconds to the target by seed; None: not reached in its time."""
        return [reached(trial, self.target) for trial in self.last(point)]

    def at_least(self, point: Point) -> list[float]:
        """The same, with how long it trained where it did not reach the target."""
        times = ((reached(trial, self.target), trial.seconds) for trial in self.last(point))
        return [seconds if time is None else time for time, seconds in times]

    def plain(self) -> dict[str, Any]:
        others = [self.finalist] if self.finalist else []
        return super().plain() | {
            "target": None if math.isnan(self.target) else round(self.target, 4),
            "preset_times_s": self.times(self.preset),
            "finalist": dict(self.finalist) if self.finalist else None,
            "finalist_times_s": [time for point in others for time in self.times(point)],
            "trials": [self.plain_trial(trial) for trial in self.trials],
        }

    def plain_trial(self, trial: Trial) -> dict[str, Any]:
        told = {
            "settings": dict(trial.settings),
            "beside_preset": Point(tuple(trial.settings.items())).beside(self.preset),
            "seed": trial.seed,
            "seconds": round(trial.seconds, 2),
            "curve": [[round(at, 2), round(value, 4)] for at, _, value in trial.curve],
        }
        return told | ({"why": trial.why} if trial.why else {})


class Halving:
    """Successive halving from the preset; `found` is what it has found so far."""

    def __init__(
        self,
        grid: Grid,
        train: Train,
        clock: Clock,
        *,
        target: float = 0.0,
        watch: Callable[[str], Any] = lambda doing: None,
    ) -> None:
        """Prepare. target: 0 for what the preset reaches in a quarter of the time."""
        self.grid, self.train, self.clock, self.watch = grid, train, clock, watch
        self.found = Found(grid.preset, grid.preset)
        self.seed = grid.base.seed
        self.extra_s = 0.0
        """That a training takes longer than it was told to: its last evaluation."""
        if target:
            self.found.target, self.found.given = target, True

    def run(self) -> Found:
        """Set the target, halve the candidates, and let the last one meet the preset."""
        found = self.found
        with found.timed(self.clock):
            self.set_target()
            candidates = self.halve(self.candidates())
            if candidates and not math.isnan(found.target):
                found.finalist = candidates[0]
                self.meet(candidates[0])
                self.decide(candidates[0])
        return found

    def set_target(self) -> None:
        """Train the preset for a quarter of the time."""
        self.watch("training the preset")
        goal = self.found.target if self.found.given else None
        trial = self.go(self.grid.preset, 0, QUARTER * self.clock.seconds, goal)
        if not self.found.given and trial.curve:
            last = [strength for _, _, strength in trial.curve[-2:]]
            self.found.target = sum(last) / len(last)

    def candidates(self) -> list[Point]:
        """Neighbors of the preset, one value away, as many as there is time for."""
        near = self.grid.reached(self.grid.preset, self.grid.moves(1))
        room = int(RUNGS * self.clock.seconds / 2 / SHORTEST_S)
        fitting = [point for point in near if not self.grid.why_not(point)]
        return fitting[: max(min(room, MAX_CANDIDATES), 1)]

    def halve(self, points: list[Point]) -> list[Point]:
        """Train all for a short time, the better half for longer, until one is left."""
        rungs = max(math.ceil(math.log2(max(len(points), 1))), 1)
        rung_s = RUNGS * self.clock.seconds / rungs
        while points:
            each = max(rung_s / len(points), SHORTEST_S)
            trained: dict[Point, Trial] = {}
            for point in points:
                if each + self.extra_s > self.clock.left:
                    self.found.ended = "time"
                    break
                self.watch(f"training {point.beside(self.grid.preset)}, for {each:.0f} s")
                trained[point] = self.go(point, 0, each, self.found.target)
            ranks = {one: self.rank(trial, each) for one, trial in trained.items() if trial.curve}
            points = sorted(ranks, key=ranks.__getitem__)[: max(len(ranks) // 2, 1)]
            if len(points) <= 1:
                break
        return points

    def rank(self, trial: Trial, seconds: float) -> tuple[float, float]:
        """Sooner at the target comes first, then stronger at the end of its time."""
        time = reached(trial, self.found.target)
        there = [strength for at, _, strength in trial.curve if at <= seconds]
        return (math.inf if time is None else time), -(there[-1] if there else -math.inf)

    def meet(self, point: Point) -> None:
        """Train the last one and the preset to the target, with as many seeds each.

        One that takes longer than the preset did is not sooner, whatever the other seeds do.
        """
        preset = self.grid.preset
        runs = [(point, seed) for seed in range(SEEDS)]
        for one, seed in [*runs, *((preset, seed) for seed in range(1, SEEDS))]:
            cap = min(QUARTER * self.clock.seconds, self.clock.left - self.extra_s)
            if cap < SHORTEST_S:
                self.found.ended = "time"
                return
            name = one.beside(preset) or "the preset"
            self.watch(f"training {name} to {self.found.target:.3f}, seed {self.seed + seed}")
            trial = self.go(one, seed, cap, self.found.target)
            if one == point and reached(trial, self.found.target) is None:
                return

    def decide(self, point: Point) -> None:
        """Recommend it only if every seed of it was sooner than every seed of the preset."""
        mine, theirs = self.found.times(point), self.found.at_least(self.found.preset)
        known = [time for time in mine if time is not None]
        enough = len(mine) >= SEEDS and len(theirs) >= SEEDS and len(known) == len(mine)
        if enough and max(known) < min(theirs):
            self.found.best = point

    def go(self, point: Point, seed: int, seconds: float, target: float | None) -> Trial:
        began = self.clock.gone
        trial = self.train(point, self.seed + seed, seconds, target)
        self.found.trials.append(trial)
        self.extra_s = max(self.extra_s, self.clock.gone - began - seconds)
        return trial


def told_times(times: Sequence[float | None]) -> str:
    """Times to a target in words: the middle and the range, or that some did not reach it."""
    known = [time for time in times if time is not None]
    if not known:
        return "not reached" if times else "not tried"
    told = f"{median(known):.1f} s ({min(known):.1f}..{max(known):.1f})"
    seeds = f"{len(times)} seed{'s' * (len(times) > 1)}"
    missed = len(times) - len(known)
    return f"{told}, {seeds}" + (f", {missed} of them not in its time" if missed else "")
