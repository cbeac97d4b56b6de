"""Base class of learners that share their work with other processes."""

from __future__ import annotations

from typing import Any

from sparring.games.rules import Rules
from sparring.learn.learner import Overrides, Report, Snapshot
from sparring.nets.policy import Policy
from sparring.phases import Timing
from sparring.pools.lineups import Mixes


class LearnerWrapper:
    """A learner around another: what it does not define itself is that one's.

    Members of the learner protocols are defined here, the others by `__getattr__`: since Python
    3.12 `isinstance` with a protocol does not ask `__getattr__`.
    """

    inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "inner"), name)

    @property
    def rules(self) -> Rules:
        found: Rules = self.inner.rules
        return found

    @property
    def updates(self) -> int:
        found: int = self.inner.updates
        return found

    @property
    def exact(self) -> bool:
        found: bool = self.inner.exact
        return found

    @property
    def phases(self) -> Timing:
        found: Timing = self.inner.phases
        return found

    def dry_run(self) -> list[Report]:
        reports: list[Report] = self.inner.dry_run()
        return reports

    def snapshot(self, member: int = 0) -> Snapshot:
        saved: Snapshot = self.inner.snapshot(member)
        return saved

    def policy(self, member: int = 0) -> Policy:
        policy: Policy = self.inner.policy(member)
        return policy

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        self.inner.apply_overrides(overrides, member)

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        self.inner.set_mixes(mixes, member)
