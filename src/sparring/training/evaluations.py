"""What a run asks of an evaluation, and what it writes down of the answer."""

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
"""Games of the first look: enough to tell a beginner from an expert, over in about a second."""
FIRST_LIMIT_S = 10.0
"""Seconds of the first look at an environment of somebody's own."""
SEED = 500_000_000
"""The episodes of all evaluations beside training are the same, so that checkpoints are compared
by the same luck; those at the end and of `sparring eval` are others."""


def has_first_look(wanted: EvaluationConfig, opponents: list[str]) -> bool:
    """Whether a small evaluation comes before the others: where those are by the clock and long."""
    return not wanted.every_decisions and (wanted.games > FIRST_GAMES or len(opponents) > 1)


def first_look(request: Mapping[str, Any], rules: Rules) -> dict[str, Any]:
    """Return a small request, to be played at once: the hardest opponent alone, a few games."""
    opponents = list(request["opponents"])
    hardest = best_opponent(rules)
    limit = (
        {"timeout_s": min(request["timeout_s"], FIRST_LIMIT_S)} if "timeout_s" in request else {}
    )
    asked = {key: value for key, value in request.items() if key != "league"}
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
    """Mean score over opponents, and its gain per hour since the evaluation in `first`."""
    score = sum(found["score"] for found in results.values()) / len(results)
    if not first:
        first |= {"seconds": seconds, "score": score}
    hours = [first["seconds"] / 3600, seconds / 3600]
    rate = None if rules.zero_sum else gained_per(hours, [first["score"], score], MIN_HOURS)
    return {"eval/score": score, **({} if rate is None else {"eval/score_per_hour": rate})}


def by_training(rules: Rules) -> bool:
    """Whether what training pays is all that tells one checkpoint from another.

    Where several seats are the learner's, it says nothing: what one wins another one loses.
    """
    return isinstance(rules, CustomRules) and not rules.factory and rules.seats == 1


def unmeasured(rules: Rules) -> str:
    """What to say of an environment that nobody else can make."""
    if not isinstance(rules, CustomRules) or rules.factory:
        return ""
    best = "; its best checkpoint is that of the best training return" if rules.seats == 1 else ""
    return (
        f". It was given as an object, so that it is not measured beside training{best}: give a "
        "factory, such as my_module:make_env"
    )


def custom_request(rules: Rules, run: RunPlan) -> dict[str, Any]:
    """What an evaluation is told besides: which episodes, how long, where the module may lie."""
    paths = {"paths": [place for place in sys.path if place]}
    if not isinstance(rules, CustomRules):
        return paths if run.custom_net else {}
    return {"seed": SEED, "timeout_s": run.evaluation.timeout_s, **paths}


def too_few(rules: Rules, wanted: EvaluationConfig, games: int) -> str:
    """What to say of an evaluation that had no time for all of its episodes, "" if it had."""
    if games >= wanted.games:
        return ""
    return (
        f"an evaluation of {rules.name} had time for {games} of {wanted.games} episodes; set "
        f"eval.games to fewer, or eval.timeout_s above {wanted.timeout_s:g}"
    )


@dataclass
class TrainingReturn:
    """What the learner's seats were paid in games that ended."""

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
