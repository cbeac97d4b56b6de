"""Settings as a run has them that is well under way."""

from __future__ import annotations

from typing import Any

from sparring.config import TrainConfig
from sparring.games.rules import Rules
from sparring.training.planning.algorithms import sections_of
from sparring.training.planning.settings import merged


def steady(config: TrainConfig) -> TrainConfig:
    """Return settings whose rounds all cost the same, like those in the middle of a run.

    All epochs are made, learning from replay has begun, and what plays is the network.
    """
    own: dict[str, dict[str, Any]] = {
        "ppo": {"target_kl": 0.0},
        "dqn": {"epsilon": config.dqn.epsilon.values[-1]},
    }
    changes: dict[str, Any] = {config.algo: own[config.algo]} if config.algo in own else {}
    if config.hierarchy.on and changes:  # it goes before what roles have of their own
        changes["roles"] = {role: dict(changes) for role in Rules(config.game).roles}
    if "replay" in sections_of(config.algo, config.dqn.mode):
        changes["replay"] = {"warmup": 0}
    calm: TrainConfig = merged(config, changes, "measuring")
    return calm
