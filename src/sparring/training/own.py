"""How a run on an environment of somebody's own is measured: by what whole episodes pay."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparring.config import EvaluationConfig
from sparring.games.rules import Rules
from sparring.pools.foreign.rules import ForeignRules
from sparring.training.planning.runs import RunPlan

SEED = 500_000_000
"""The episodes of all evaluations beside training are the same, so that checkpoints are compared
by the same luck; those at the end and of `sparring eval` are others."""


def name_factory(rules: Rules, run: RunPlan) -> None:
    """Have the rules say what makes their environment, so that whoever loads them can."""
    if isinstance(rules, ForeignRules) and run.factory:
        rules.factory = run.factory


def can_be_measured(rules: Rules, run: RunPlan) -> bool:
    """Whether somebody beside training can play the game, with the network."""
    if run.only_here:
        return False
    return bool(rules.factory) if isinstance(rules, ForeignRules) else bool(rules.bots)


def by_training(rules: Rules) -> bool:
    """Whether what training pays is all that tells one checkpoint from another.

    Where several seats are the learner's, it says nothing: what one wins another one loses.
    """
    return isinstance(rules, ForeignRules) and not rules.factory and rules.seats == 1


def unmeasured(rules: Rules) -> str:
    """What to say of an environment that nobody else can make."""
    if not isinstance(rules, ForeignRules) or rules.factory:
        return ""
    best = "; its best checkpoint is that of the best training return" if rules.seats == 1 else ""
    return (
        f". It was given as an object, so that it is not measured beside training{best}: give a "
        "factory, such as my_module:make_env"
    )


def own_request(rules: Rules, run: RunPlan) -> dict[str, Any]:
    """What an evaluation is told besides: which episodes, how long, where the module may lie."""
    paths = {"paths": [place for place in sys.path if place]}
    if not isinstance(rules, ForeignRules):
        return paths if run.own_net else {}
    return {"seed": SEED, "limit_s": run.evaluation.limit_s, **paths}


def too_few(rules: Rules, wanted: EvaluationConfig, games: int) -> str:
    """What to say of an evaluation that had no time for all of its episodes, "" if it had."""
    if games >= wanted.games:
        return ""
    return (
        f"an evaluation of {rules.name} had time for {games} of {wanted.games} episodes; set "
        f"eval.games to fewer, or eval.limit_s above {wanted.limit_s:g}"
    )


@dataclass
class TrainingReturn:
    """What the learner's seats were paid in games that ended."""

    games: float = 0.0
    total: float = 0.0

    def add(self, stats: Mapping[str, float]) -> None:
        """Add an update."""
        games = stats.get("charts/games", 0.0)
        if games:
            self.games += games
            self.total += games * stats["charts/score"]

    @property
    def mean(self) -> float:
        """Of a game."""
        return self.total / self.games
