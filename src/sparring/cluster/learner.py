"""PPO whose games are played by actors."""

from __future__ import annotations

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.learn.learner import Learner
from sparring.learn.plan import Plan


def make_learner(config: TrainConfig, plan: Plan) -> Learner:
    """Return the learner of a run with actors."""
    raise ConfigError(f"actors {config.actors}: not there yet for {plan.rules.name}")
