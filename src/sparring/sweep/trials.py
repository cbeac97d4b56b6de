"""Trials: what was tried, who trains them, what they are worth, and which of them are hopeless."""

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
"""Whose settings a run that confirms has: the best trial's, or the file's own."""
STRENGTH, HARDEST, SCORE = "strength", "hardest", "score"
"""What a sweep may raise, besides the win share against an opponent."""
LEAST = 3
"""Trials that have to have got as far before one is pruned, whatever the warm-up."""
FIRST_SHARE = 0.2
"""Share of a trial's length in which nothing is pruned: it says little yet."""

Point = tuple[float, float, float]
"""An evaluation: seconds, decisions, value."""
Judge = Callable[[int, Sequence[Point]], str]
"""Says why a trial is hopeless, by its number and its evaluations so far; "" if it is not."""
Value = tuple[float, float | None, float | None]
"""A number and its 95 % interval, where that is known."""


@dataclass(frozen=True)
class Trial:
    """Settings that were tried by a training."""

    number: int
    settings: Mapping[str, Any]
    """Values by the name of their range, such as "ppo.lr", "set.order" or "opponents"."""
    state: str = RUNNING
    value: float | None = None
    """What the search raises: strength at the end, or where it was pruned."""
    low: float | None = None
    high: float | None = None
    """The interval of `value`."""
    curve: tuple[Point, ...] = ()
    """Evaluations on the way."""
    seconds: float = 0.0
    decisions: int = 0
    seed: int = 0
    run: str = ""
    """The folder of its run."""
    init: str = ""
    """The run whose weights it began with."""
    why: str = ""
    """Why it was pruned, or what failed."""
    extra: Mapping[str, Any] = field(default_factory=dict)


def finished(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.state == DONE and trial.value is not None]


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The best trial that went to its end; of equals the earliest."""
    return max(finished(trials), key=lambda trial: (trial.value, -trial.number), default=None)


def failed(trial: Trial, why: str) -> Trial:
    return replace(trial, state=FAILED, why=why or "it failed without a word")


class RefusedError(Exception):
    """Nothing was trained: the settings were refused, or did not fit."""


@dataclass(frozen=True)
class Job:
    """A trial that is to be trained."""

    trial: Trial
    config: TrainConfig
    """Complete; its name is that of the run's folder."""
    final: bool = False
    """Measure it at the end as `sparring train` does, over many games."""


class Executor(Protocol):
    """Whoever trains."""

    at_once: int
    shared: Sequence[str]
    """Ranges of which jobs that begin together should have one value."""

    @property
    def free(self) -> int:
        """How many jobs may begin now."""

    def begin(self, jobs: Sequence[Job], judge: Judge) -> None:
        """Begin some, no more than are free. judge: asked after every evaluation."""

    def wait(self) -> list[Trial]:
        """Wait until something has ended, and return it with what came of it."""

    def close(self) -> None:
        """End everything that is under way."""


def never(_number: int, _curve: Sequence[Point]) -> str:
    return ""


def why_pruned(
    curve: Sequence[Point], trials: Sequence[Trial], *, warm_up: int, by: int = 0
) -> str:
    """Say why a trial is hopeless, "" if it is not.

    It is if the best of its evaluations so far is below the median of what the trials that went to
    the end had at the same place. curve: of the trial. warm_up: trials that have to have ended
    well before; 0: nothing is ever pruned. by: 0 compares at equal seconds, 1 at equal decisions.
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


def value_at(curve: Sequence[Point], place: float, by: int) -> float | None:
    """What a curve was at a place, on the line between two evaluations; None before the first."""
    if curve[0][by] > place:
        return None
    return float(np.interp(place, [point[by] for point in curve], [point[2] for point in curve]))


def measured_against(config: TrainConfig, rules: Rules) -> tuple[str, ...]:
    """Whom the evaluations of a run meet."""
    return tuple(config.eval.against or default_opponents(rules, 2)) or (ALONE,)


def check_raised(raised: str, config: TrainConfig, rules: Rules, where: str) -> None:
    """Refuse to raise what no evaluation says."""
    known = [STRENGTH, SCORE]
    known += [] if rules.seats == 1 else [HARDEST, *measured_against(config, rules)]
    if raised not in known:
        raise ConfigError(f"{where}: sweep.raise {raised!r} is unknown{suggestion(raised, known)}")


def value_of(raised: str, results: Mapping[str, Mapping[str, Any]]) -> Value:
    """The number that a sweep raises.

    strength: the mean win share over the opponents, of one seat the score. hardest: the win share
    against whom it is lowest. score: the mean score. Or an opponent's name: the win share there.
    """
    if ALONE in results or raised == SCORE:
        keys = ("score", "score_low", "score_high")
        return mean_of([match_of(found, *keys) for found in results.values()])
    wins = {name: match_of(found, "win", "low", "high") for name, found in results.items()}
    if raised == STRENGTH:
        return mean_of([*wins.values()])
    return min(wins.values(), key=lambda value: value[0]) if raised == HARDEST else wins[raised]


def match_of(found: Mapping[str, Any], value: str, *ends: str) -> Value:
    """A number of a match and its interval; an end that is no number is left out."""
    known = [found.get(end) for end in ends]
    low, high = (None if end is None or not math.isfinite(end) else float(end) for end in known)
    return float(found[value]), low, high


def mean_of(values: Sequence[Value]) -> Value:
    """The mean of independent matches; the halves of their intervals add up as errors do."""
    count = len(values)
    mean = sum(value for value, _, _ in values) / count
    below = [value - low for value, low, _ in values if low is not None]
    above = [high - value for value, _, high in values if high is not None]
    low = mean - math.hypot(*below) / count if len(below) == count else None
    high = mean + math.hypot(*above) / count if len(above) == count else None
    return mean, low, high
