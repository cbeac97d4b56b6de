"""PPO with a network for every role: one collector plays, each role learns from its own decisions.

A role's decisions are a chain: what a seat is paid between two of them, by the role's own weights,
belongs to the first. So a manager's step reaches over all that its worker does meanwhile, and is
discounted once, and once more for every forced move of its seat that was played without asking; a
worker's last decision before the manager's next one may be the end of what it is responsible for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.config import CollectConfig
from sparring.learn.adjust import Terms
from sparring.learn.collect import Actor, Sampling
from sparring.learn.forward import Forward
from sparring.learn.knobs import Knobs
from sparring.learn.learner import Snapshot
from sparring.learn.on_policy import OPTIMISER, Arrays, FromRollouts
from sparring.learn.plan import RolePlan, Turns
from sparring.learn.ppo import PolicyDescent, has_unit, value_cuts
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.native_net import NativeRoles
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

Places = npt.NDArray[np.intp]
RoleKnobs = dict[str, Knobs]


@dataclass(frozen=True)
class Discounts:
    """How decisions of all roles are linked, a number for each role."""

    gamma_into: tuple[float, ...]
    """Of a step into its next decision."""
    gamma_of: tuple[float, ...]
    """Of its forced and last steps."""
    lambda_of: tuple[float, ...]
    ended_by: tuple[int, ...]
    """Bits of the roles whose decision ends what it did before."""


def discounts_of(roles: Sequence[RolePlan], knobs: RoleKnobs, member: int = 0) -> Discounts:
    """Read them off the roles' own settings; knobs: as they are in one update."""
    names = [plan.role for plan in roles]
    own = [knobs[name] for name in names]
    into = [plan.settings[member].gamma_into for plan in roles]
    # What a role discounts by is its own affair; a step into it that counts nothing is everybody's.
    last = {name for at, name in enumerate(names) if into[at] and into[at][at] == 0}
    return Discounts(
        tuple(
            given[at] if given else knob.gamma
            for at, (given, knob) in enumerate(zip(into, own, strict=True))
        ),
        tuple(knob.gamma for knob in own),
        tuple(knob.gae_lambda for knob in own),
        tuple(sum(1 << names.index(by) for by in last | set(plan.ended_by)) for plan in roles),
    )


class Hierarchy(FromRollouts[RoleKnobs]):
    """The learner, step by step. Snapshots have an optimiser for every role."""

    columns = ("log_prob", "value")
    net: HierarchyNet

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        roles: Sequence[RolePlan],
        turns: Turns | None = None,
        **options: Any,
    ) -> None:
        """Take over a pool. roles: in the order of the game's. options: of `HostedLearner`."""
        nets = {plan.role: plan.net for plan in roles}
        options = {**options, "by_role": True, "roles": nets}
        super().__init__(pool, collect, roles[0].net, **options)
        self.roles, self.turns = tuple(roles), turns or Turns()
        self.settings = {plan.role: plan.settings[0] for plan in roles}
        runs = {role: Forward(self.net.of(role), self.device, collect) for role in self.settings}
        natives = {role: run.go_native(self.threads) for role, run in runs.items()}
        self.parts = {
            role: PolicyDescent(runs[role], config, natives[role], self.terms)
            for role, config in self.settings.items()
        }
        found = {role: native for role, native in natives.items() if native}
        if len(found) == len(natives):
            self.forward.lean = NativeRoles(self.net, found).say
        self.descents = {f"{OPTIMISER}.{role}": part for role, part in self.parts.items()}

    def adjust(self, terms: Terms, member: int = 0) -> None:
        """Go on under other terms. No running game changes its rules, seats or start."""
        super().adjust(replace(terms, settings=None), member)
        self.settings |= terms.role_settings or {}

    def make_actor(self) -> Actor:
        """Draws actions."""
        return Sampling(self.forward, self.seed)

    def knobs_at(self, moment: Moment) -> RoleKnobs:
        """Read every schedule of every role."""
        return {role: Knobs.at(config, moment) for role, config in self.settings.items()}

    def learns(self, role: str) -> bool:
        """Whether it is a role's turn."""
        return self.turns.learns(role, self.rules.roles, self.updates)

    # Learning

    def learn(self, knobs: RoleKnobs) -> dict[str, float]:
        """Let every role whose turn it is learn from its own decisions."""
        with self.phases("advantage"):
            samples, targets = self.targets(knobs)
        stats: dict[str, float] = {}
        steps = learned = 0.0
        for number, role in enumerate(self.parts):
            mine = samples[self.place_roles()[samples] == number]
            if not len(mine) or not self.learns(role):
                continue
            own = {name: array[mine] for name, array in targets.items()}
            said = self._learn_role(number, role, mine, own, knobs[role])
            stats |= {f"{name}/{role}": value for name, value in said.items()}
            steps, learned = steps + said["learning/optimiser_steps"], learned + len(mine)
        stats["learning/optimiser_steps"] = float(steps)
        stats["learning/samples"] = float(learned)
        return stats

    def targets(self, knobs: RoleKnobs) -> tuple[Places, Arrays]:
        """Link the rollout; the places that are complete, and targets by place."""
        value = self.collector.rollout.columns["value"]
        value_cuts(self, by_role=True)
        terms = discounts_of(self.roles, knobs)
        samples = self.collector.link(
            1.0,
            terms.gamma_into,
            gamma_of=terms.gamma_of,
            ended_by=terms.ended_by,
            by_final_role=True,
        )
        advantage = self.collector.transitions.advantages(
            value, 1.0, lambda_of=terms.lambda_of, role=self.collector.rollout.role
        )
        return samples, {"advantage": advantage, "returns": advantage + value}

    def place_roles(self) -> npt.NDArray[np.int8]:
        """The role of every place: decisions that were carried over, then the rollout's rows."""
        roles, rollout = len(self.rules.roles), self.collector.rollout
        chains = self.collector.transitions.carried // roles
        carried = np.tile(np.arange(roles, dtype=np.int8), chains)
        return np.concatenate([carried, rollout.role.reshape(-1)])

    def _learn_role(
        self, number: int, role: str, samples: Places, targets: Arrays, knobs: Knobs
    ) -> dict[str, float]:
        """Improve one network; return what curves show."""
        part, rollout = self.parts[role], self.collector.rollout
        with self.phases("advantage"):
            if self.collector.transitions.paid[samples].any():
                part.choose_unit(targets["returns"])
            arrays = part.arrays(rollout.rows(), samples, targets)
        stats = self.pass_over(
            part, samples, arrays, knobs, number, loss=part.loss, far_enough=part.far_enough
        )
        stats |= part.stats(targets["returns"], rollout.columns["value"][samples], knobs)
        stats["learning/native"] = float(part.forward.native is not None)
        return stats

    # Saving

    def notes(self) -> dict[str, Any]:
        """Whether the values of each role have a unit."""
        return {"has_unit": {role: part.has_unit for role, part in self.parts.items()}}

    def read_notes(self, snapshot: Snapshot) -> None:
        """Go on with it."""
        known: Mapping[str, bool] | bool = snapshot.meta.get("has_unit", has_unit(snapshot))
        for role, part in self.parts.items():
            part.has_unit = bool(known[role] if isinstance(known, Mapping) else known)
