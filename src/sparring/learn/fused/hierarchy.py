"""A network for every role on a GPU: one rollout, and an update of each role behind it.

The same algorithm as `learn.hierarchy`, which stays the readable one and the one for CPUs. All
networks look at all rows of a step, and each answers those of its role; decisions are linked once,
by role, and every role learns from its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from sparring.config import CollectConfig, HindsightConfig, NetConfig
from sparring.errors import ConfigError
from sparring.learn.adjust import Terms
from sparring.learn.fused.figures import Figures, rollout_figures
from sparring.learn.fused.games import Games
from sparring.learn.fused.kernels import blocks_of
from sparring.learn.fused.learner import Voice
from sparring.learn.fused.links import carry, links_view, rollout_view
from sparring.learn.fused.minibatches import check_configs
from sparring.learn.fused.on_policy import FusedOnPolicy, learned_of
from sparring.learn.fused.update import Update
from sparring.learn.hierarchy import discounts_of
from sparring.learn.knobs import Knobs
from sparring.learn.learner import Snapshot
from sparring.learn.on_policy import OPTIMISER, optimiser_state
from sparring.learn.plan import RolePlan, Turns
from sparring.nets.flat_hierarchy import FlatHierarchy
from sparring.nets.hierarchy import RoleTeller
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.schedule import Moment


class FusedHierarchy(FusedOnPolicy):
    """The learner of one member or of a whole population, with a network for every role."""

    def __init__(
        self,
        games: Games,
        collect: CollectConfig,
        roles: Sequence[RolePlan],
        *,
        turns: Turns | None = None,
        hindsight: HindsightConfig | None = None,
        graphs: bool = True,
    ) -> None:
        """Take over games whose seeds are those of the members.

        roles: in the order of the game's. turns: who learns when; left out, all together.
        """
        if not games.captures:
            raise ConfigError("a hierarchy on a GPU has its games there too; use --pool auto")
        for plan in roles:
            check_configs(games, collect.games, plan.settings)
        self.roles = tuple(roles)
        net = roles[-1].net
        super().__init__(games, collect, net, by_role=True, hindsight=hindsight, graphs=graphs)
        self.turns = turns or Turns()
        self.role_configs = {plan.role: list(plan.settings) for plan in roles}
        """Of the algorithm, by role and member; read anew for every update."""
        self.parts: dict[str, Update] = {
            plan.role: self.make_update(voice, self.role_configs[plan.role])
            for plan, voice in zip(roles, self.voices, strict=True)
        }
        names = [plan.role for plan in roles]
        self.teller = RoleTeller(games.rules).to(self.device)
        with torch.device(self.device):
            self.gamma_into, self.gamma_of, self.lambda_of = (
                torch.zeros(self.members, len(names)) for _ in range(3)
            )
            self.ended_by = torch.zeros(self.members, len(names), dtype=torch.int32)
            self.final_role = torch.zeros(self.rollout.final_value.shape, dtype=torch.int8)
        self._measured = list(self.parts[names[0]].measure())
        self.figures = Figures(self._measure, self.members)

    def _make_flat(self, net: NetConfig, *, bf16: bool) -> FlatHierarchy:
        return FlatHierarchy(
            self.games.rules,
            {plan.role: plan.net for plan in self.roles},
            self.members,
            bf16=bf16,
            device=self.device,
            memory=self.pool.memory_bytes,
        )

    def _make_voices(self) -> list[Voice]:
        return [
            Voice(self.kernels, net, self.games.at_once, role)
            for role, net in enumerate(self.net.roles.values())
        ]

    def _fresh_net(self) -> Net:
        configs = {plan.role: plan.net for plan in self.roles}
        net, memory = self.roles[-1].net, self.pool.memory_bytes
        return make_net(self.games.rules, net, memory=memory, roles=configs)

    def adjust(self, terms: Terms, member: int = 0) -> None:
        """Go on under other terms."""
        super().adjust(replace(terms, settings=None), member)
        for role, settings in (terms.role_settings or {}).items():
            self.role_configs[role][member] = settings

    # The course of an update

    def learning(self) -> dict[str, Update]:
        """The roles whose turn it is."""
        names = list(self.parts)
        turn = [role for role in names if self.turns.learns(role, names, self.updates)]
        return {role: self.parts[role] for role in turn}

    def turn_knobs(self, moments: Sequence[Moment]) -> list[dict[str, float]]:
        """Send schedules to the device; returns what curves show of them, by member."""
        shown: list[dict[str, float]] = [{} for _ in moments]
        knobs: list[dict[str, Knobs]] = [{} for _ in moments]
        for role, part in self.parts.items():
            for member, mine in enumerate(part.turn_knobs(self.updates, moments)):
                knobs[member][role] = mine
                shown[member][f"learning/lr/{role}"] = mine.lr
                shown[member][f"learning/entropy_weight/{role}"] = mine.entropy
        found = [discounts_of(self.roles, mine, member) for member, mine in enumerate(knobs)]
        for name in ("gamma_into", "gamma_of", "lambda_of", "ended_by"):
            getattr(self, name).copy_(torch.tensor([getattr(mine, name) for mine in found]))
        return shown

    def value_cuts(self, number: int) -> None:
        """Estimate what games would still have paid when they were cut for the `number`th time.

        That is the worth to the role in which a seat was to move; others are not estimated.
        """
        role = self.teller(self.rollout.cut_obs[number]).to(torch.int8)
        for part in self.parts.values():
            part.value_cuts(number, role, self.final_role)

    def learn(self) -> None:
        """Advantages, then the epochs of every role whose turn it is."""
        turn = self.learning()
        self._run(f"advantages {' '.join(turn)}", self._begin)
        for role, part in turn.items():
            self._run(f"update {role} {part.fit()}", part.pass_over)
        self._run(f"end {' '.join(turn)}", self._end)

    def _begin(self) -> None:
        """Link all decisions and estimate their advantages; list the samples of each role."""
        kernels, rollout = self.kernels, self.rollout
        rollout.fill_columns()
        estimate = kernels.view(
            "EstimateView",
            gamma=self.gamma_of,
            gae_lambda=self.lambda_of,
            apart=self.gamma_of.shape[1],
            gamma_into=self.gamma_into,
            gamma_of=self.gamma_of,
            lambda_of=self.lambda_of,
            ended_by=self.ended_by,
            value=rollout.value,
            advantage=rollout.advantage,
            each=self.games.each,
        )
        played = rollout_view(kernels, rollout, final_role=self.final_role)
        views = played, links_view(kernels, rollout)
        kernels.estimate_advantages(blocks_of(rollout.games, 64), 64, *views, estimate)
        for part in self.parts.values():
            part.sample_counts.zero_()
        for part in self.learning().values():
            part.remember()
            part.list_samples()

    def _end(self) -> None:
        """Leave members that diverged as they were, in every role, and carry on."""
        turn = self.learning().values()
        diverged = torch.stack([part.diverged for part in self.parts.values()]).amax(0)
        for part in turn:
            part.take_back(diverged)
        carry(self.kernels, self.rollout)
        self.figures.take()

    def _measure(self) -> dict[str, Tensor]:
        """Every figure of rollout and updates by name, one number per member."""
        found: dict[str, Tensor] = {}
        for role, part in self.parts.items():
            found |= {f"{role}/{name}": value for name, value in part.measure().items()}
        diverged = torch.stack([part.diverged for part in self.parts.values()]).amax(0)
        return {**found, "diverged": diverged, **rollout_figures(self.rollout, self.games)}

    def kept(self) -> list[Tensor]:
        """What an update changes of networks and optimisers."""
        return [tensor for part in self.parts.values() for tensor in part.kept()]

    # Reports

    def sampled(self, member: int) -> int:
        """Decisions that the last update learned from."""
        found = self.figures.of(member)
        return int(sum(found[f"{role}/samples"] for role in self.parts))

    def learned(self, member: int) -> dict[str, float]:
        """What the last update brought, as curves show it."""
        found = self.figures.of(member)
        stats: dict[str, float] = {}
        for role, part in self.parts.items():
            if not found[f"{role}/samples"]:
                continue  # it was not its turn
            own = {name: found[f"{role}/{name}"] for name in self._measured}
            stats |= {f"{name}/{role}": value for name, value in learned_of(own, part).items()}
        for name in ("samples", "optimiser_steps"):
            each = (stats.get(f"learning/{name}/{role}", 0.0) for role in self.parts)
            stats[f"learning/{name}"] = sum(each)
        return stats

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what a member's next update depends on, in the layout of `Hierarchy.snapshot`."""
        saved = self._saved(member)
        optimisers = {
            f"{OPTIMISER}.{role}": part.optimiser(member) for role, part in self.parts.items()
        }
        units = {role: bool(part.has_unit[member]) for role, part in self.parts.items()}
        return replace(
            saved,
            tensors={**saved.tensors, **optimisers},
            meta={**saved.meta, "has_unit": units},
        )

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a member of a fresh learner where the snapshot was taken."""
        self._put_saved(snapshot, member)
        units: dict[str, Any] = snapshot.meta["has_unit"]
        for role, part in self.parts.items():
            part.load_optimiser(member, optimiser_state(snapshot, f"{OPTIMISER}.{role}"))
            part.diverged[member] = 0
            part.has_unit[member] = int(units[role])
