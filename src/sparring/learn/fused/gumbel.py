"""Gumbel AlphaZero on a GPU: the rollout of `learn.gumbel` with its searches is one CUDA graph.

Every step searches all rows of the learner together: a wave per simulation, in which all trees
select a leaf, the network evaluates the leaves as one batch, and all trees take the values. Trees
with fewer simulations would only wait, so that a step is searched fully or quickly as a whole.
The update is that of PPO with another loss: lambda-returns are GAE over the values of the roots.
tests/cuda/test_fused_gumbel.py compares the loss with that of `learn.gumbel`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from sparring.config import CollectConfig, GumbelConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.learn.fused.games import Games
from sparring.learn.fused.kernels import GUMBEL_SOURCE, blocks_of
from sparring.learn.fused.minibatches import FusedMinibatch, Images
from sparring.learn.fused.playing import FusedSelfPlay, RoleActing
from sparring.learn.fused.ppo import FusedPPO
from sparring.learn.fused.rollout import RolloutColumn
from sparring.learn.fused.terms import PolicyLoss
from sparring.learn.fused.update import Update
from sparring.learn.gumbel import EPS
from sparring.learn.learner import Overrides, Report
from sparring.learn.searching import FULL, search_settings
from sparring.learn.transforms import IMPROVED
from sparring.nets.run.flat import FlatNet, Pass
from sparring.pools.cuda import CudaPool
from sparring.pools.lineups import LEARNER
from sparring.schedule import Moment, Schedule
from sparring.search.cuda import CudaSearch

METRICS = {
    "policy_loss": "policy_loss",
    "value_loss": "value_loss",
    "target_entropy": "entropy",
    "search_changed": "clipfrac",
}
"""Metrics of the loss, by the fields of `Losses` in csrc/cuda/ppo.cuh that hold them."""


class SearchedPlay(FusedSelfPlay):
    """Self-play in which every decision of the learner is searched."""

    def __init__(self, games: Games, *args: Any, **options: Any) -> None:
        super().__init__(games, *args, **options, source=GUMBEL_SOURCE)
        rollout, actions = self.rollout, games.rules.actions
        with torch.device(self.device):
            self.improved = torch.zeros(rollout.places, actions)
            """Improved policy by place."""
            self.full = torch.zeros(rollout.places)
            """By place, 1 after a full search."""
        rollout.columns += [RolloutColumn(IMPROVED, self.improved), RolloutColumn(FULL, self.full)]

    def configure(self, config: GumbelConfig) -> None:
        """Make the trees, large enough for every simulation of the run."""
        assert isinstance(self.pool, CudaPool)
        self.search_config = config
        self.search = CudaSearch(
            self.pool,
            max(round(max(config.simulations.values)), config.fast_simulations),
            noise=True,
            config=search_settings(config),
        )
        self.leaves = self.acting[""].passing
        if self.search.row_count > 1:
            rows = self.games.at_once * self.search.row_count
            self.leaves = self.net.make_pass(rows, learn=False)
        self._values = torch.zeros(self.members, self.leaves.rows, device=self.device)
        self.graphs.forget()

    def set_simulations(self, simulations: int) -> None:
        """Set the simulations of a full search; each number has its own graph."""
        self.simulations = simulations
        self.graph_name = f"rollout {simulations}"

    def simulations_at(self, step: int) -> int:
        full = self.simulations
        return full if self.is_full(step) else min(self.search_config.fast_simulations, full)

    def counts(self, decisions: float) -> dict[str, float]:
        """Return how much was searched in a rollout with so many decisions of a member."""
        steps, trees = self.rollout.steps, self.search.trees // self.members
        made = sum(map(self.simulations_at, range(steps)))
        return {
            "learning/simulated": decisions * made / steps,
            "learning/evaluations": float((made + steps) * trees * self.search.row_count),
        }

    def is_full(self, step: int) -> bool:
        """Whether a step is searched fully: an even share of the steps of a rollout."""
        share = max(self.search_config.full_share, 1 / self.rollout.steps)
        return int((step + 1) * share + 1e-9) > int(step * share + 1e-9)

    def _act(self, step: int, rows: slice) -> None:
        """Search from all rows of the learner in a step."""
        rollout, at = self.rollout, self.rollout.at(step, rows)
        simulations, search = self.simulations_at(step), self.search
        self._look(step, rows)
        search.begin(simulations, policy=rollout.policy[step], learner=LEARNER)
        search.select()
        for _ in range(simulations + 1):  # the root comes first
            search.advance(*evaluate_leaves(self.net, self.leaves, search.obs, self._values))
        search.decide(rollout.action[at], rollout.value[at], self.improved[at])
        self.full[at].fill_(float(self.is_full(step)))
        if self.frozen:
            asked = self._asked(step, rows) | self.acting[""].view_fields(None)
            blocks = blocks_of(rows.stop - rows.start, self.block_rows)
            self.frozen.act(asked, self._answers(at), blocks)


def evaluate_leaves(
    net: FlatNet, leaves: Pass, obs: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """Run a network on leaves; return logits and values in units of the rewards.

    values: memory for them [members, rows].
    """
    leaves.read(obs)
    leaves.forward()
    leaves.logits.add_(net.policy_bias.reshape(-1, 1, net.policy_bias.shape[-1]))
    value_bias = net.value_bias.reshape(-1, net.value_bias.shape[-1])[:, :1]
    torch.add(leaves.value[:, :, 0], value_bias, out=values)
    values.mul_(net.value_scale[:, None])
    return leaves.logits, values


class SearchLoss(PolicyLoss):
    """Launches `search_loss` of csrc/cuda/gumbel.cuh."""

    def write(
        self,
        number: int,
        minibatch: FusedMinibatch,
        images: Sequence[Images],
        counts: Tensor,
        dealt: Mapping[str, int],
    ) -> None:
        rows = dict(minibatch.rows)
        improved, full = rows.pop(IMPROVED), rows.pop(FULL)
        places = minibatch.places[:, : self.room]
        found = torch.where(places >= 0, full[places.clamp(min=0).long()], 0.0)
        targets = self.kernels.view(
            "TargetsView", improved=improved, full=full, searched=found.sum(1).clamp(min=1)
        )
        views = self.views(number, rows, minibatch.places, counts, dealt)
        self.kernels.search_loss(self.grid, 256, self.heads, views[0], targets, views[1])


class SearchUpdate(Update):
    """The update of PPO, with the loss of Gumbel AlphaZero."""

    def __init__(self, playing: SearchedPlay, *args: Any, **options: Any) -> None:
        super().__init__(playing, *args, **options, loss=SearchLoss, epsilon=EPS)
        self._by_place |= {IMPROVED: playing.improved, FULL: playing.full}

    def stats(self, found: Mapping[str, float]) -> dict[str, float]:
        steps = max(found["optimizer_steps"], 1.0)
        ours = {f"losses/{name}": found[field] / steps for name, field in METRICS.items()}
        unused = ("entropy", "clipfrac", "approx_kl", *METRICS)
        shared = super().stats(found)
        return {n: x for n, x in shared.items() if n not in {f"losses/{u}" for u in unused}} | ours


class FusedGumbel(FusedPPO):
    """The learner of one run or of all members of a population."""

    playing: SearchedPlay

    def __init__(
        self,
        games: Games,
        collect: CollectConfig,
        configs: GumbelConfig | Sequence[GumbelConfig],
        net: NetConfig,
        **options: Any,
    ) -> None:
        """Play and learn from games on the GPU. options: of `FusedPPO`."""
        if not games.captures:
            raise ConfigError("searches on a GPU need games on the GPU; use --pool auto")
        if isinstance(configs, GumbelConfig):
            configs = [configs] * len(games.seeds)
        self.searches = list(configs)
        """Settings by member."""
        check_searches(self.searches)
        super().__init__(games, collect, [as_ppo(one) for one in self.searches], net, **options)
        self.playing.configure(self.searches[0])

    def make_playing(self, *args: Any, **options: Any) -> FusedSelfPlay:
        return SearchedPlay(*args, **options)

    def make_update(
        self, acting_net: RoleActing, configs: Sequence[PPOConfig], **options: Any
    ) -> Update:
        return SearchUpdate(self.playing, acting_net, configs, **options)

    def set_hparams(self, moments: Sequence[Moment]) -> list[dict[str, float]]:
        simulations = round(self.searches[0].simulations.at(moments[0]))
        self.playing.set_simulations(simulations)
        shown = super().set_hparams(moments)
        return [
            {"learning/lr": one["learning/lr"], "learning/simulations": float(simulations)}
            for one in shown
        ]

    def iterate(self, progress: float) -> list[Report]:
        reports = super().iterate(progress)
        for report in reports:
            if decisions := report.stats.get("learning/decisions"):
                report.stats.update(self.playing.counts(decisions))
        return reports

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        if isinstance(overrides.settings, GumbelConfig):
            self.searches[member] = overrides.settings
            check_searches(self.searches)
            self.playing.configure(overrides.settings)
            overrides = replace(overrides, settings=as_ppo(overrides.settings))
        super().apply_overrides(overrides, member)


def as_ppo(config: GumbelConfig) -> PPOConfig:
    """The settings of PPO's update that learn what a configuration asks for."""
    none = Schedule.constant(0.0)
    return PPOConfig(
        epochs=config.epochs,
        minibatch=config.minibatch,
        lr=config.lr,
        gamma=Schedule.constant(config.gamma),
        gae_lambda=config.td_lambda,
        value_clip=none,
        value_weight=config.value_weight,
        entropy=none,
        max_grad_norm=config.max_grad_norm,
        target_kl=none,
    )


def check_searches(configs: Sequence[GumbelConfig]) -> None:
    """Raise if members search differently: their trees share the waves."""
    names = ("simulations", "full_share", "fast_simulations", "considered", "c_scale", "gamma")
    for name in names:
        if len({str(getattr(config, name)) for config in configs}) > 1:
            raise ConfigError(f"gumbel.{name} differs between members; give all the same")
