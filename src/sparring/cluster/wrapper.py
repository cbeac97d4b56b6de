"""Base class of learners that share their work with other processes."""

from __future__ import annotations

from typing import Any

from sparring.learn.ppo import PPO


class PPOWrapper:
    """A learner around a PPO: what it does not define itself is the PPO's."""

    ppo: PPO

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "ppo"), name)
