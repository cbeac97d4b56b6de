"""PPO on a GPU: games, rollout, advantages and update as two CUDA graphs.

The same algorithm as `learn.ppo`, which stays the readable one and the one for CPUs; tests hold
the two equal. Python runs once per update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from sparring.config import CollectConfig, HeadsConfig, HindsightConfig, NetConfig, PPOConfig
from sparring.learn.fused.games import Games
from sparring.learn.fused.heads import fused_heads
from sparring.learn.fused.minibatches import check_configs
from sparring.learn.fused.on_policy import FusedOnPolicy, learned_of
from sparring.learn.fused.terms import FusedTerm
from sparring.learn.learner import Snapshot
from sparring.learn.on_policy import optimiser_state
from sparring.learn.ppo import has_unit
from sparring.schedule import Moment


class FusedPPO(FusedOnPolicy):
    """The learner of one member or of a whole population."""

    def __init__(
        self,
        games: Games,
        collect: CollectConfig,
        configs: PPOConfig | Sequence[PPOConfig],
        net: NetConfig,
        *,
        by_role: bool = False,
        slots: int = 0,
        hindsight: HindsightConfig | None = None,
        graphs: bool = True,
        heads: HeadsConfig | None = None,
    ) -> None:
        """Take over games whose seeds are those of the members.

        configs: one for all members, or one each; they share what decides the shapes.
        by_role, slots, hindsight, graphs, heads: see `FusedLearner` and `FusedOnPolicy`.
        """
        members = len(games.seeds)
        given = [configs] * members if isinstance(configs, PPOConfig) else list(configs)
        check_configs(games, collect.games, given)
        super().__init__(
            games,
            collect,
            net,
            by_role=by_role,
            slots=slots,
            hindsight=hindsight,
            graphs=graphs,
            heads=heads,
        )
        self.configs = given
        self.update = self.make_update(self.voices[0], given)
        self.figures = self.update.figures
        terms = fused_heads(self.net, self.rollout, self.formulas)
        if terms:
            self.put_terms(terms)

    def put_terms(self, terms: Sequence[FusedTerm]) -> None:
        """Have these terms of the loss from now on, beside PPO's own."""
        self.update.put_terms(terms)
        self.figures = self.update.figures
        self.forget_graphs()

    @property
    def terms(self) -> Sequence[FusedTerm]:
        """Of the loss, beside PPO's own."""
        return tuple(self.update.terms.list)

    def turn_knobs(self, moments: Sequence[Moment]) -> list[dict[str, float]]:
        """Send schedules to the device; returns what curves show of them, by member."""
        knobs = self.update.turn_knobs(self.updates, moments)
        return [{"learning/lr": k.lr, "learning/entropy_weight": k.entropy} for k in knobs]

    def value_cuts(self, number: int) -> None:
        """Estimate what games would still have paid when they were cut for the `number`th time."""
        self.update.value_cuts(number)

    def learn(self) -> None:
        """Advantages, epochs over shuffled minibatches, and what is carried on."""
        if self._frozen:
            self._run("advantages", self.update.begin)
            self._run(f"update {self.update.fit()}", self.update.finish)
        else:
            self._run("update", self.update.learn)

    def kept(self) -> list[Tensor]:
        """What an update changes of network and optimiser."""
        return self.update.kept()

    def sampled(self, member: int) -> int:
        """Decisions that the last update learned from."""
        return int(self.figures.of(member)["samples"])

    def learned(self, member: int) -> dict[str, float]:
        """What the last update brought, as curves show it."""
        return learned_of(self.figures.of(member), self.update)

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what a member's next update depends on, in the layout of `PPO.snapshot`."""
        saved = self._saved(member)
        return replace(
            saved,
            tensors={**saved.tensors, "optimiser": self.update.optimiser(member)},
            meta={**saved.meta, "has_unit": bool(self.update.has_unit[member])},
        )

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a member of a fresh learner where the snapshot was taken."""
        self._put_saved(snapshot, member)
        self.update.load_optimiser(member, optimiser_state(snapshot))
        self.update.diverged[member] = 0
        self.update.has_unit[member] = int(has_unit(snapshot))
