"""Trials of a sweep: their results, objective values and pruning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Protocol

import numpy as np

from sparring.config import TrainConfig
from sparring.errors import ConfigError, suggestion
from sparring.games.rules import Rules
from sparring.league.arena import ALONE, default_opponents

RUNNING, DONE, PRUNED, FAILED = "running", "done", "pruned", "failed"
SIDES = BEST, PRESET = "best", "preset"
"""Settings of a confirmation run: the best trial's, or the file's."""
STRENGTH, HARDEST, SCORE = "strength", "hardest", "score"
"""Objectives of a sweep, besides the win rate against an opponent."""
LEAST = 3
"""Minimum number of trials to compare with before one is pruned."""
FIRST_SHARE = 0.2
"""Share of a trial's length in which nothing is pruned."""

Evaluation = tuple[float, float, float]
"""An evaluation: seconds, decisions, value."""
Judge = Callable[[int, Sequence[Evaluation]], str]
"""Returns why to prune a trial, from its number and evaluations; "" to continue."""
Value = tuple[float, float | None, float | None]
"""A value and its 95 % interval, if known."""


@dataclass(frozen=True)
class Trial:
    """One training with some settings, and its result."""

    number: int
    settings: Mapping[str, Any]
    """Values by the name of their range, such as "ppo.lr", "set.order" or "opponents"."""
    state: str = RUNNING
    value: float | None = None
    """Objective value at the end, or when it was pruned."""
    low: float | None = None
    high: float | None = None
    """Confidence interval of `value`."""
    curve: tuple[Evaluation, ...] = ()
    """Evaluations during training."""
    seconds: float = 0.0
    decisions: int = 0
    seed: int = 0
    run: str = ""
    """Folder of its run."""
    init: str = ""
    """Run that its initial weights are from."""
    why: str = ""
    """Why it was pruned or failed."""
    extra: Mapping[str, Any] = field(default_factory=dict)


def finished(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.state == DONE and trial.value is not None]


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """Return the best finished trial; the earliest of equals."""
    return max(finished(trials), key=lambda trial: (trial.value, -trial.number), default=None)


def failed(trial: Trial, why: str) -> Trial:
    return replace(trial, state=FAILED, why=why or "it failed without a word")


class TrialRefusedError(Exception):
    """A training could not start: its settings are invalid or do not fit."""


@dataclass(frozen=True)
class TrialJob:
    """A trial to train."""

    trial: Trial
    config: TrainConfig
    """Complete configuration; its name is the folder of the run."""
    final: bool = False
    """Play the final games of `sparring train` at the end."""


class Executor(Protocol):
    """Trains jobs."""

    at_once: int
    shared: Sequence[str]
    """Ranges that have one value for all jobs that start together."""

    @property
    def free(self) -> int:
        """Jobs that may start now."""

    def begin(self, jobs: Sequence[TrialJob], judge: Judge) -> None:
        """Start at most `free` jobs. judge: called after every evaluation."""

    def wait(self) -> list[Trial]:
        """Wait for trials to end and return them."""

    def close(self) -> None:
        """Stop all jobs."""


def never_prune(_number: int, _curve: Sequence[Evaluation]) -> str:
    return ""


def prune_reason(
    curve: Sequence[Evaluation], trials: Sequence[Trial], *, warm_up: int, by: int = 0
) -> str:
    """Return why to prune a trial, "" to continue.

    It is pruned if its best evaluation is below the median of finished trials at the same time.
    warm_up: finished trials before pruning starts; 0: no pruning. by: 0 compares at equal seconds,
    1 at equal decisions.
    """
    done = [trial for trial in trials if trial.state == DONE and trial.curve]
    if not warm_up or len(done) < max(warm_up, LEAST) or not curve:
        return ""
    place = curve[-1][by]
    if place < FIRST_SHARE * median(trial.curve[-1][by] for trial in done):
        return ""
    there = [value for trial in done if (value := value_at(trial.curve, place, by)) is not None]
    if len(there) < LEAST:
        return ""
    mine, middle = max(value for _, _, value in curve), median(there)
    if mine >= middle:
        return ""
    what = f"{place:,.0f} decisions" if by else f"{place:.0f} s"
    return f"{mine:.3g} after {what}, below the median {middle:.3g} of {len(there)} trials"


def value_at(curve: Sequence[Evaluation], place: float, by: int) -> float | None:
    """Return the value of a curve at a time, linearly interpolated; None before its start."""
    if curve[0][by] > place:
        return None
    return float(np.interp(place, [point[by] for point in curve], [point[2] for point in curve]))


def measured_against(config: TrainConfig, rules: Rules) -> tuple[str, ...]:
    """Return the opponents of a run's evaluations."""
    return tuple(config.eval.against or default_opponents(rules, 2)) or (ALONE,)


def check_objective(raised: str, config: TrainConfig, rules: Rules, where: str) -> None:
    """Raise for an unknown objective."""
    known = [STRENGTH, SCORE]
    known += [] if rules.seats == 1 else [HARDEST, *measured_against(config, rules)]
    if raised not in known:
        raise ConfigError(f"{where}: sweep.raise {raised!r} is unknown{suggestion(raised, known)}")


def objective_value(raised: str, results: Mapping[str, Mapping[str, Any]]) -> Value:
    """Return the objective value of evaluation results.

    strength: mean win rate over the opponents, with one seat the score. hardest: lowest win rate.
    score: mean score. Or an opponent's name: the win rate against it.
    """
    if ALONE in results or raised == SCORE:
        keys = ("score", "score_low", "score_high")
        return mean_of([match_of(found, *keys) for found in results.values()])
    wins = {name: match_of(found, "win", "low", "high") for name, found in results.items()}
    if raised == STRENGTH:
        return mean_of([*wins.values()])
    return min(wins.values(), key=lambda value: value[0]) if raised == HARDEST else wins[raised]


def match_of(found: Mapping[str, Any], value: str, *ends: str) -> Value:
    """Return a value of a match and its interval; None for ends that are not finite."""
    known = [found.get(end) for end in ends]
    low, high = (None if end is None or not math.isfinite(end) else float(end) for end in known)
    return float(found[value]), low, high


def mean_of(values: Sequence[Value]) -> Value:
    """Return the mean of independent matches; half intervals add like standard errors."""
    count = len(values)
    mean = sum(value for value, _, _ in values) / count
    below = [value - low for value, low, _ in values if low is not None]
    above = [high - value for value, _, high in values if high is not None]
    low = mean - math.hypot(*below) / count if len(below) == count else None
    high = mean + math.hypot(*above) / count if len(above) == count else None
    return mean, low, high
