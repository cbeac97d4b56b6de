"""What a run asks of an evaluation, and what it writes down of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparring.config import EvaluationConfig
from sparring.games.rules import Rules
from sparring.league.arena import ALONE
from sparring.training.records.strength import LEAST_HOURS, best_opponent, gained_per

FIRST_GAMES = 128
"""Games of the first look: enough to tell a beginner from an expert, over in about a second."""
FIRST_LIMIT_S = 10.0
"""Seconds of the first look at an environment of somebody's own."""


def has_first_look(wanted: EvaluationConfig, opponents: list[str]) -> bool:
    """Whether a small evaluation comes before the others: where those are by the clock and long."""
    return not wanted.every_decisions and (wanted.games > FIRST_GAMES or len(opponents) > 1)


def first_look(request: Mapping[str, Any], rules: Rules) -> dict[str, Any]:
    """Return a small request, to be played at once: the hardest opponent alone, a few games."""
    opponents = list(request["opponents"])
    hardest = best_opponent(rules)
    limit = {"limit_s": min(request["limit_s"], FIRST_LIMIT_S)} if "limit_s" in request else {}
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
    """Return what curves keep of a match."""
    kept = ("score",) if name == ALONE else ("win", "low", "high", "score")
    return {f"eval/{name}/{key}": found[key] for key in kept}


def pace(
    first: dict[str, float], results: Mapping[str, Any], seconds: float, rules: Rules
) -> dict[str, float]:
    """Return the mean score over opponents, and what was gained of it per hour since the first.

    first: seconds and score of the first evaluation; filled by that one.
    """
    score = sum(found["score"] for found in results.values()) / len(results)
    if not first:
        first |= {"seconds": seconds, "score": score}
    hours = [first["seconds"] / 3600, seconds / 3600]
    rate = None if rules.zero_sum else gained_per(hours, [first["score"], score], LEAST_HOURS)
    return {"eval/score": score, **({} if rate is None else {"eval/score_per_hour": rate})}
