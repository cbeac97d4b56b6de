"""The members of a league on a CPU: a learner each, which take turns in one process.

On a GPU one learner trains all members of a population side by side. On a CPU that gains nothing,
except that members meet each other's past selves: every update is one of each member in turn, so
that the archive grows in the same order in every repetition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sparring.errors import ConfigError
from sparring.learn.acting import TakesOpponents
from sparring.learn.learner import (
    DivergedError,
    Learner,
    Overridable,
    Overrides,
    Report,
    Snapshot,
)
from sparring.learn.plan import Plan
from sparring.nets.policy import Policy
from sparring.phases import Timing
from sparring.pools.lineups import Mixes


class TurnTaking:
    """A learner of several runs, each with a learner of its own."""

    def __init__(self, members: Sequence[Learner]) -> None:
        self.members = list(members)
        self.rules, self.phases = self.members[0].rules, Timing()
        self.last: list[Report] = [Report({}, 0, 0) for _ in members]
        self.diverged: set[int] = set()

    @property
    def updates(self) -> int:
        return max(member.updates for member in self.members)

    @property
    def exact(self) -> bool:
        return all(member.exact for member in self.members)

    def iterate(self, progress: float) -> list[Report]:
        """Make an update of each member; one that diverges stops, the others continue."""
        for number, member in enumerate(self.members):
            if number in self.diverged:
                self.last[number] = replace(self.last[number], diverged="", stats={}, met=None)
                continue
            try:
                (self.last[number],) = member.iterate(progress)
            except DivergedError as error:
                self.diverged.add(number)
                self.last[number] = replace(
                    self.last[number], diverged=str(error), stats={}, met=None
                )
            for name, seconds in member.phases.take().items():
                self.phases.seconds[name] = self.phases.seconds.get(name, 0.0) + seconds
        return list(self.last)

    def snapshot(self, member: int = 0) -> Snapshot:
        return self.members[member].snapshot()

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        self.members[member].restore(snapshot)

    def policy(self, member: int = 0) -> Policy:
        return self.members[member].policy()

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        one = self.members[member]
        if not isinstance(one, Overridable):
            raise ConfigError(f"{type(one).__name__} takes no changes during a run")
        one.apply_overrides(overrides)

    # Frozen opponents, as `learn.acting.TakesOpponents` has them

    @property
    def slots(self) -> int:
        return self._seating(0).slots

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        self._seating(member).put(slot, weights, greedy=greedy)

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        self._seating(member).set_mixes(mixes)

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        return self._seating(member).seated()

    def _seating(self, member: int) -> TakesOpponents:
        one = self.members[member]
        assert isinstance(one, TakesOpponents)
        return one


def plan_of(plan: Plan, member: int) -> Plan:
    """Return the plan of one member of a population, as if it were trained alone."""
    roles = tuple(replace(role, settings=(role.settings[member],)) for role in plan.roles)
    return replace(
        plan,
        rules=plan.rules_of(member),
        custom_rules=(),
        seeds=(plan.seeds[member],),
        settings=(plan.settings[member],),
        first=(plan.first[member],) if plan.first else (),
        roles=roles,
    )
