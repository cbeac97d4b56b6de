"""Whether decisions can be seen in hindsight: asked before a run begins."""

from __future__ import annotations

from sparring.config import TrainConfig
from sparring.curriculum.curriculum import Curriculum
from sparring.errors import ConfigError
from sparring.games.goals import demand_goals, demand_told
from sparring.games.rules import Rules
from sparring.training.planning.algorithms import ROLLOUTS


def check_hindsight(rules: Rules, config: TrainConfig, curriculum: Curriculum) -> None:
    """Refuse hindsight where there are no goals, or where nobody would learn from it."""
    if not config.hindsight.on:
        return
    if config.algo == "sac":
        raise ConfigError(
            "hindsight.on: goals are set by discrete actions, and algo sac learns from continuous "
            "ones alone; use --algo ppo or dqn, or leave it out"
        )
    if config.algo == "dqn" and config.dqn.mode == ROLLOUTS:
        raise ConfigError(
            "hindsight.on: dqn.mode rollouts remembers nothing that could be seen once more; use "
            "dqn.mode replay or --algo ppo, or leave it out"
        )
    demand_goals(rules)
    if config.algo == "dqn":
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
