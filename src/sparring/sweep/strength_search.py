"""Search for the time to a strength: successive halving over short trainings.

The preset trains first and sets the target. Its neighbors then train for a short time each, the
better half for longer, and the last one trains to the target with two seeds, like the preset. All
have the schedules of one training, and are stopped early.
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
from sparring.sweep.parameters import TuneCandidate
from sparring.sweep.timings import SearchBudget, TuneResult
from sparring.sweep.training import DIVERGED_WORDS, TrialCallbacks, reason
from sparring.sweep.trials import DONE, STRENGTH, Trial, TrialJob, failed
from sparring.training.planning.settings import replace_budget
from sparring.training.train import train_with

QUARTER, RUNGS = 0.25, 0.125
"""Shares of the time: for the preset to set the target, and for all rungs together."""
SHORTEST_S = 6.0
"""Minimum seconds of a training: a shorter one is hardly evaluated."""
MAX_CANDIDATES, SEEDS = 8, 2
EVALUATIONS = 20
"""Evaluations of a whole training; each may find that the target is reached."""
GAMES = 512


Train = Callable[[TuneCandidate, int, float, float | None], Trial]
"""Trains a candidate with a seed for some seconds, or until it reaches a strength."""


class TrainingStoppedError(Exception):
    """A signal stopped a training."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.number = signal.Signals[name]


@dataclass(frozen=True)
class TrialTrainer:
    """Trains candidates in this process, in temporary folders."""

    grid: Grid
    seconds: float
    """Length of the training whose schedules all candidates have."""

    def __call__(
        self, point: TuneCandidate, seed: int, seconds: float, target: float | None
    ) -> Trial:
        """Train until a strength is reached, or for some seconds of wall time."""
        until, config = time.monotonic() + seconds, self.config(point, seed)

        def enough(_number: int) -> str:
            last = watch.curves[0][-1:]
            reached = target is not None and any(value >= target for _, _, value in last)
            return "it is over" if reached or time.monotonic() > until else ""

        with tempfile.TemporaryDirectory(prefix="sparring-tune-") as folder:
            job = TrialJob(Trial(0, point, seed=seed), replace(config, runs=folder, name="trial"))
            watch = TrialCallbacks([job], STRENGTH, lambda _number, _point: None, enough)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # repeated for every short training
                    agent = train_with(job.config, quiet=True, callbacks=watch.callbacks)
            except (SparringError, MemoryError) as error:
                return failed(job.trial, reason(error))
        if agent.ended.startswith("SIG"):
            raise TrainingStoppedError(agent.ended)
        trained, _ = watch.last(0)
        why = DIVERGED_WORDS if watch.diverged else ""
        curve = tuple(watch.curves[0])
        return replace(job.trial, state=DONE, curve=curve, seconds=trained, why=why)

    def config(self, point: TuneCandidate, seed: int) -> TrainConfig:
        """Return the settings of a training that is evaluated often and writes no files."""
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


def target_time(trial: Trial, target: float) -> float | None:
    """Return the seconds of the first evaluation that reached the target; None: none did."""
    return next((at for at, _, strength in trial.curve if strength >= target), None)


@dataclass
class StrengthResult(TuneResult):
    """Result of a search for strength."""

    target: float = math.nan
    given: bool = False
    """Whether the user set the target."""
    trials: list[Trial] = field(default_factory=list)
    finalist: TuneCandidate | None = None
    """The candidate that met the preset with several seeds; the best, if it was faster."""

    def last(self, point: TuneCandidate) -> list[Trial]:
        """Return the last training of a candidate with each seed."""
        found = {t.seed: t for t in self.trials if t.settings == point and not t.why}
        return list(found.values())

    def times(self, point: TuneCandidate) -> list[float | None]:
        """Return the seconds to the target by seed; None: not reached."""
        return [target_time(trial, self.target) for trial in self.last(point)]

    def at_least(self, point: TuneCandidate) -> list[float]:
        """Return `times`, with the training time where the target was not reached."""
        times = ((target_time(trial, self.target), trial.seconds) for trial in self.last(point))
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
        values = {
            "settings": dict(trial.settings),
            "changes": TuneCandidate(tuple(trial.settings.items())).describe_changes(self.preset),
            "seed": trial.seed,
            "seconds": round(trial.seconds, 2),
            "curve": [[round(at, 2), round(value, 4)] for at, _, value in trial.curve],
        }
        return values | ({"why": trial.why} if trial.why else {})


class SuccessiveHalving:
    """Successive halving that starts from the preset; `found` is the result so far."""

    def __init__(
        self,
        grid: Grid,
        train: Train,
        budget: SearchBudget,
        *,
        target: float = 0.0,
        watch: Callable[[str], Any] = lambda doing: None,
    ) -> None:
        """Prepare. target: 0 for the strength of the preset after a quarter of the time."""
        self.grid, self.train, self.budget, self.watch = grid, train, budget, watch
        self.found = StrengthResult(grid.preset, grid.preset)
        self.seed = grid.base.seed
        self.extra_s = 0.0
        """Seconds that a training takes longer than its limit: its last evaluation."""
        if target:
            self.found.target, self.found.given = target, True

    def run(self) -> StrengthResult:
        """Set the target, halve the candidates, and compare the last one with the preset."""
        found = self.found
        with found.timed(self.budget):
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
        trial = self.go(self.grid.preset, 0, QUARTER * self.budget.total_s, goal)
        if not self.found.given and trial.curve:
            last = [strength for _, _, strength in trial.curve[-2:]]
            self.found.target = sum(last) / len(last)

    def candidates(self) -> list[TuneCandidate]:
        """Return the preset's nearest neighbors, as many as there is time for."""
        near = self.grid.apply_moves(self.grid.preset, self.grid.moves(1))
        room = int(RUNGS * self.budget.total_s / 2 / SHORTEST_S)
        fitting = [point for point in near if not self.grid.unsupported_reason(point)]
        return fitting[: max(min(room, MAX_CANDIDATES), 1)]

    def halve(self, points: list[TuneCandidate]) -> list[TuneCandidate]:
        """Train all for a short time, the better half for longer, until one is left."""
        rungs = max(math.ceil(math.log2(max(len(points), 1))), 1)
        rung_s = RUNGS * self.budget.total_s / rungs
        while points:
            each = max(rung_s / len(points), SHORTEST_S)
            trained: dict[TuneCandidate, Trial] = {}
            for point in points:
                if each + self.extra_s > self.budget.left_s:
                    self.found.ended = "time"
                    break
                self.watch(f"training {point.describe_changes(self.grid.preset)}, for {each:.0f} s")
                trained[point] = self.go(point, 0, each, self.found.target)
            ranks = {one: self.rank(trial, each) for one, trial in trained.items() if trial.curve}
            points = sorted(ranks, key=ranks.__getitem__)[: max(len(ranks) // 2, 1)]
            if len(points) <= 1:
                break
        return points

    def rank(self, trial: Trial, seconds: float) -> tuple[float, float]:
        """Return the sort key: seconds to the target, then strength at the end."""
        time = target_time(trial, self.found.target)
        there = [strength for at, _, strength in trial.curve if at <= seconds]
        return (math.inf if time is None else time), -(there[-1] if there else -math.inf)

    def meet(self, point: TuneCandidate) -> None:
        """Train the last candidate and the preset to the target, with the same seeds.

        It stops at a seed with which the candidate does not reach the target in time.
        """
        preset = self.grid.preset
        runs = [(point, seed) for seed in range(SEEDS)]
        for one, seed in [*runs, *((preset, seed) for seed in range(1, SEEDS))]:
            cap = min(QUARTER * self.budget.total_s, self.budget.left_s - self.extra_s)
            if cap < SHORTEST_S:
                self.found.ended = "time"
                return
            name = one.describe_changes(preset) or "the preset"
            self.watch(f"training {name} to {self.found.target:.3f}, seed {self.seed + seed}")
            trial = self.go(one, seed, cap, self.found.target)
            if one == point and target_time(trial, self.found.target) is None:
                return

    def decide(self, point: TuneCandidate) -> None:
        """Recommend the candidate only if each of its seeds was faster than all of the preset's."""
        mine, theirs = self.found.times(point), self.found.at_least(self.found.preset)
        known = [time for time in mine if time is not None]
        enough = len(mine) >= SEEDS and len(theirs) >= SEEDS and len(known) == len(mine)
        if enough and max(known) < min(theirs):
            self.found.best = point

    def go(self, point: TuneCandidate, seed: int, seconds: float, target: float | None) -> Trial:
        began = self.budget.elapsed_s
        trial = self.train(point, self.seed + seed, seconds, target)
        self.found.trials.append(trial)
        self.extra_s = max(self.extra_s, self.budget.elapsed_s - began - seconds)
        return trial


def describe_times(times: Sequence[float | None]) -> str:
    """Describe times to a target: median and range, and how many did not reach it."""
    known = [time for time in times if time is not None]
    if not known:
        return "not reached" if times else "not tried"
    text = f"{median(known):.1f} s ({min(known):.1f}..{max(known):.1f})"
    seeds = f"{len(times)} seed{'s' * (len(times) > 1)}"
    missed = len(times) - len(known)
    return f"{text}, {seeds}" + (f", {missed} of them not in its time" if missed else "")
