"""What a sweep raises: one number, with its interval, from what an evaluation found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError, nearest
from sparring.games.rules import Rules
from sparring.league.arena import ALONE, usual_opponents
from sparring.sweep.file import STRENGTH

HARDEST, SCORE = "hardest", "score"

Value = tuple[float, float | None, float | None]
"""A number and its 95 % interval, where that is known."""


def measured_against(config: TrainConfig, rules: Rules) -> tuple[str, ...]:
    """Whom the evaluations of a run meet."""
    return tuple(config.eval.against or usual_opponents(rules, 2)) or (ALONE,)


def demand_raised(raised: str, config: TrainConfig, rules: Rules, where: str) -> None:
    """Refuse to raise what no evaluation says."""
    met = measured_against(config, rules)
    known = [STRENGTH, SCORE]
    known += [] if rules.seats == 1 else [HARDEST, *met]
    if raised not in known:
        raise ConfigError(f"{where}: sweep.raise {raised!r} is unknown{nearest(raised, known)}")


def value_of(raised: str, results: Mapping[str, Mapping[str, Any]]) -> Value:
    """The number that a sweep raises.

    strength: the mean win share over the opponents, of one seat the score. hardest: the win share
    against whom it is lowest. score: the mean score. Or an opponent's name: the win share there.
    """
    if ALONE in results or raised == SCORE:
        return mean_of([of_score(found) for found in results.values()])
    if raised == STRENGTH:
        return mean_of([of_win(found) for found in results.values()])
    if raised == HARDEST:
        return min((of_win(found) for found in results.values()), key=lambda value: value[0])
    return of_win(results[raised])


def of_win(found: Mapping[str, Any]) -> Value:
    """The win share of a match."""
    return float(found["win"]), known(found.get("low")), known(found.get("high"))


def of_score(found: Mapping[str, Any]) -> Value:
    """The score of a match."""
    return float(found["score"]), known(found.get("score_low")), known(found.get("score_high"))


def known(number: Any) -> float | None:
    """A number of a record; what is none is left out."""
    return float(number) if number is not None and math.isfinite(number) else None


def mean_of(values: Sequence[Value]) -> Value:
    """The mean of independent matches; the halves of their intervals add up as errors do."""
    count = len(values)
    mean = sum(value for value, _, _ in values) / count
    below = combined([None if low is None else value - low for value, low, _ in values])
    above = combined([None if high is None else high - value for value, _, high in values])
    return mean, None if below is None else mean - below, None if above is None else mean + above


def combined(halves: Sequence[float | None]) -> float | None:
    """Half an interval of a mean."""
    there = [half for half in halves if half is not None]
    if len(there) < len(halves):
        return None
    return math.sqrt(sum(half * half for half in there)) / len(halves)
