"""Whether records of a game tell what hindsight has to know: asked before a run begins."""

from __future__ import annotations

from sparring.config import TrainConfig
from sparring.curriculum.curriculum import Curriculum
from sparring.games.goals import demand_goals, demand_told
from sparring.games.rules import Rules
from sparring.training.planning.algorithms import REMEMBERS


def check_goals(rules: Rules, config: TrainConfig, curriculum: Curriculum) -> None:
    """Refuse hindsight where flags leave out what a record would have to tell."""
    if not config.hindsight.on:
        return
    demand_goals(rules)
    if config.algo in REMEMBERS:
        demand_told(rules, paid_parts(rules, curriculum))


def paid_parts(rules: Rules, curriculum: Curriculum) -> list[str]:
    """The parts that are paid for at some time of a run."""
    parts, own = [], curriculum.own.rewards
    if not own:
        weights, roles = rules.weights(None), len(rules.roles)
        parts = [one for i, one in enumerate(rules.parts) if any(weights[i * roles :][:roles])]
    for one in (curriculum.own, *curriculum.phases):
        for name, weight in one.rewards.items():
            if any(weight.values):
                parts.append(name.rpartition(".")[2])
    return list(dict.fromkeys(parts))
