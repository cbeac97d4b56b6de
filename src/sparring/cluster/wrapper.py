"""Base class of learners that share their work with other processes."""

from __future__ import annotations

from typing import Any

from sparring.games.rules import Rules
from sparring.learn.learner import Overrides, Report, Snapshot
from sparring.learn.ppo import PPO
from sparring.nets.policy import Policy
from sparring.phases import Timing
from sparring.pools.lineups import Mixes


class PPOWrapper:
    """A learner around a PPO: what it does not define itself is the PPO's.

    Members of the learner protocols are defined here, the others by `__getattr__`: since Python
    3.12 `isinstance` with a protocol does not ask `__getattr__`.
    """

    ppo: PPO

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "ppo"), name)

    @property
    def rules(self) -> Rules:
        return self.ppo.rules

    @property
    def updates(self) -> int:
        return self.ppo.updates

    @property
    def exact(self) -> bool:
        return self.ppo.exact

    @property
    def phases(self) -> Timing:
        return self.ppo.phases

    def dry_run(self) -> list[Report]:
        return self.ppo.dry_run()

    def snapshot(self, member: int = 0) -> Snapshot:
        return self.ppo.snapshot(member)

    def policy(self, member: int = 0) -> Policy:
        return self.ppo.policy(member)

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        self.ppo.apply_overrides(overrides, member)

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        self.ppo.set_mixes(mixes, member)
