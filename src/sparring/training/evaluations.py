"""Requests for evaluations, and the metrics of their results."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparring.config import EvaluationConfig
from sparring.games.rules import Rules
from sparring.league.arena import ALONE
from sparring.pools.custom.rules import CustomRules
from sparring.training.planning.training import RunPlan
from sparring.training.records.strength import MIN_HOURS, best_opponent, gained_per

FIRST_GAMES = 128
"""Games of the first, small evaluation: a rough result after about a second."""
FIRST_TIMEOUT_S = 10.0
"""Timeout of the first evaluation of a custom environment."""
SEED = 500_000_000
"""All evaluations during training use the same episodes, so that checkpoints are comparable; the
final evaluation and `sparring eval` use others."""


def has_first_look(wanted: EvaluationConfig, opponents: list[str]) -> bool:
    """Whether a small evaluation comes first: if evaluations are long and timed by the clock."""
    return not wanted.every_decisions and (wanted.games > FIRST_GAMES or len(opponents) > 1)


def first_look(request: Mapping[str, Any], rules: Rules) -> dict[str, Any]:
    """Return a small, urgent request: few games against the strongest opponent."""
    opponents = list(request["opponents"])
    hardest = best_opponent(rules)
    limit = (
        {"timeout_s": min(request["timeout_s"], FIRST_TIMEOUT_S)} if "timeout_s" in request else {}
    )
    asked = {key: value for key, value in request.items() if key not in ("league", "exact")}
    return {
        **asked,
        **limit,
        "opponents": [hardest] if hardest in opponents else opponents[-1:],
        "rivals": [],
        "games": min(request["games"], FIRST_GAMES),
        "urgent": True,
    }


def curves_of_match(name: str, found: Mapping[str, Any]) -> dict[str, float]:
    kept = ("score",) if name == ALONE else ("win", "low", "high", "score")
    return {f"eval/{name}/{key}": found[key] for key in kept}


def pace(
    first: dict[str, float], results: Mapping[str, Any], seconds: float, rules: Rules
) -> dict[str, float]:
    """Return the mean score over opponents, and its gain per hour since the first evaluation."""
    score = sum(found["score"] for found in results.values()) / len(results)
    if not first:
        first |= {"seconds": seconds, "score": score}
    hours = [first["seconds"] / 3600, seconds / 3600]
    rate = None if rules.zero_sum else gained_per(hours, [first["score"], score], MIN_HOURS)
    return {"eval/score": score, **({} if rate is None else {"eval/score_per_hour": rate})}


def by_training(rules: Rules) -> bool:
    """Whether checkpoints are compared by training returns: environment objects with one seat.

    With several seats of the learner the return says nothing: one seat wins what another loses.
    """
    return isinstance(rules, CustomRules) and not rules.factory and rules.seats == 1


def unmeasured(rules: Rules) -> str:
    """Return a note about an environment object, which other processes cannot create."""
    if not isinstance(rules, CustomRules) or rules.factory:
        return ""
    best = "; its best checkpoint is that of the best training return" if rules.seats == 1 else ""
    return (
        f". It was given as an object, so it is not evaluated during training{best}: give a "
        "factory, such as my_module:make_env"
    )


def custom_request(rules: Rules, run: RunPlan) -> dict[str, Any]:
    """Return additional keys of a request for custom environments and networks."""
    paths = {"paths": [place for place in sys.path if place]}
    if not isinstance(rules, CustomRules):
        return paths if run.custom_net else {}
    return {"seed": SEED, "timeout_s": run.evaluation.timeout_s, **paths}


def too_few(rules: Rules, wanted: EvaluationConfig, games: int) -> str:
    """Return a warning if an evaluation played fewer episodes than wanted, else ""."""
    if games >= wanted.games:
        return ""
    return (
        f"an evaluation of {rules.name} had time for {games} of {wanted.games} episodes; set "
        f"eval.games to fewer, or eval.timeout_s above {wanted.timeout_s:g}"
    )


@dataclass
class TrainingReturn:
    """Mean return of the learner's seats in finished training games."""

    games: float = 0.0
    total: float = 0.0

    def add(self, stats: Mapping[str, float]) -> None:
        games = stats.get("charts/games", 0.0)
        if games:
            self.games += games
            self.total += games * stats["charts/score"]

    @property
    def mean(self) -> float:
        return self.total / self.games
