"""PQN: Q-learning from fresh rollouts, without replay and without a target network.

The page reads in the order in which an update runs: exploration, rollout, lambda-returns, epochs
of minibatches, loss, report; then what is saved.

Targets are lambda-returns: what was paid, then the best value of what followed mixed with what
came after it (Peng's Q(lambda)). Layer norm (net.norm) keeps values calm without a target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, DQNConfig, NetConfig
from sparring.errors import ConfigError
from sparring.learn.acting import Exploring
from sparring.learn.backends.torch import OPTIMIZER, TorchBackend
from sparring.learn.learner import DivergedError, Overrides, Report, Snapshot, apply_game_overrides
from sparring.learn.losses import dqn_loss, q_values, spread_epsilon
from sparring.learn.minibatches import Metrics, RolloutSamples, mean_metrics, shuffle_rng
from sparring.learn.plan import ScheduledValues
from sparring.learn.playing import SelfPlay, update_normalizer
from sparring.learn.process_group import SINGLE
from sparring.nets.net import POLICY, VALUE, HeadOutputs
from sparring.nets.policy import BY_VALUE, DUELING, Policy
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

EPS = 1e-8
"""Adam's."""


@dataclass(frozen=True)
class PQNHparams(ScheduledValues):
    """The numbers of `DQNConfig` that a schedule may change, as they are in one update."""

    lr: float
    gamma: float
    q_lambda: float
    epsilon: float
    max_grad_norm: float


class PQN:
    """Explores, and learns the values of actions from every rollout."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: DQNConfig,
        net: NetConfig,
        *,
        seed: int = 0,
        **options: Any,
    ) -> None:
        assert not pool.rules.box and not net.recurrent
        self.config, self.seed = config, seed
        playing = self.playing = SelfPlay(
            pool,
            collect,
            net,
            lambda forward: Exploring(forward, pool.rules, seed, greedy=True, keep=self.worth),
            ("value",),
            facts={BY_VALUE: True, DUELING: config.dueling},
            seed=seed,
            **options,
        )
        assert isinstance(playing.actor, Exploring)
        self.exploring = playing.actor
        self.pool, self.rules, self.phases = playing.pool, playing.rules, playing.phases
        self.net, self.forward, self.collector = playing.net, playing.forward, playing.collector
        self.slots, self.put = playing.slots, playing.put
        self.set_mixes, self.seated = playing.set_mixes, playing.seated
        self.exact = playing.collector.exact
        self.optimizer = TorchBackend(self.net, eps=EPS)
        self.updates = self.samples = 0

    def iterate(self, progress: float) -> list[Report]:
        """Play a rollout and learn from it; return what was earned and learned."""
        hparams = self.hparams_at(Moment(self.collector.decisions, progress))
        with self.playing.best_matmul():
            finished = self.collector.collect(self.updates)
            stats = self.update(hparams)
        return [self.collector.report({**stats, **finished}, self.samples)]

    def hparams_at(self, moment: Moment) -> PQNHparams:
        """Read every schedule, and explore by them."""
        hparams = PQNHparams.at(self.config, moment)
        spread, games = self.config.epsilon_spread, self.pool.num_games
        self.exploring.set_epsilon(spread_epsilon(hparams.epsilon, spread, games))
        return hparams

    def update(self, hparams: PQNHparams) -> dict[str, float]:
        """Learn from the rollout, and keep the decisions that are still open."""
        rollout, phases = self.collector.rollout, self.phases
        with phases("advantage"):
            samples, returns = self.lambda_returns(hparams)
        arrays = {"obs": rollout.obs, "mask": rollout.mask, "action": rollout.action}
        arrays = {name: array[samples] for name, array in arrays.items()} | {"returns": returns}
        with phases("transfer"):
            device = self.playing.device
            data = {name: torch.from_numpy(one).to(device) for name, one in arrays.items()}
        with phases("update"):
            logged = self.epochs(data, hparams)
        stats = {f"losses/{name}": mean for name, mean in mean_metrics(logged).items()}
        stats |= {
            "learning/lr": hparams.lr,
            "learning/optimizer_steps": float(len(logged)),
            "learning/samples": float(len(samples)),
            "losses/q": float(rollout.columns["value"][samples].mean()),
            "learning/gamma": hparams.gamma,
            "learning/epsilon": hparams.epsilon,
            "learning/native": 0.0,
            "learning/decisions": float(rollout.decisions()),
            "charts/forced": float(rollout.skipped.sum()),
        }
        update_normalizer(self.net, self.collector)  # only now: it was played and learned as it was
        self.samples += len(samples)
        self.updates += 1
        with phases("stepping"):
            self.collector.keep_pending()
        return stats

    def worth(self, heads: HeadOutputs, mask: Tensor) -> dict[str, npt.NDArray[np.float32]]:
        """What the best legal action of every row is worth, which is kept beside the action."""
        legal = mask.to(heads[POLICY].device)
        q = q_values(heads[POLICY], heads[VALUE], legal, dueling=self.config.dueling)
        return {"value": q.amax(-1).cpu().numpy()}

    @torch.no_grad()
    def lambda_returns(
        self, hparams: PQNHparams
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
        """Return the decisions that are complete, and what each is to be worth."""
        rollout, transitions = self.collector.rollout, self.collector.transitions
        if rollout.truncations.obs:  # what cut games would still have paid
            obs, mask = (
                np.concatenate(rollout.truncations.obs),
                np.concatenate(rollout.truncations.mask),
            )
            after = self.worth(self.forward(torch.from_numpy(obs)), torch.from_numpy(mask))
            rollout.truncations.set_values(rollout, after["value"])
        samples = self.collector.link(hparams.gamma, self.config.gamma_into)
        value = rollout.columns["value"]
        beyond = transitions.advantages(value, hparams.q_lambda)[samples]
        return samples, beyond + value[samples]

    def epochs(self, data: Mapping[str, Tensor], hparams: PQNHparams) -> list[Metrics]:
        """Pass over the samples in shuffled minibatches; return what curves show of each."""
        order, turning = shuffle_rng(self.seed, self.updates), self.playing.transforms.in_place
        samples, logged = (
            RolloutSamples(data, self.config.minibatch, order, (), turning),
            list[Metrics](),
        )
        for epoch in range(self.config.epochs):
            for minibatch in samples.epoch(self.updates, epoch, SINGLE):
                try:
                    logged.append(self.optimizer.step(minibatch, hparams, self.loss, SINGLE))
                except DivergedError as wrong:
                    raise DivergedError(f"update {self.updates}: {wrong}") from None
        return logged

    def loss(
        self, minibatch: Mapping[str, Tensor], hparams: PQNHparams
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """How far the values of the actions that were taken are from their returns."""
        heads = self.forward(minibatch["obs"])
        loss, error = dqn_loss(
            heads[POLICY],
            heads[VALUE],
            mask=minibatch["mask"],
            action=minibatch["action"],
            target=minibatch["returns"],
            dueling=self.config.dueling,
            huber=self.config.huber,
        )
        return loss, {"q_loss": loss, "td_error": error.mean()}

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        """Go on under other overrides. No running game changes its rules, seats or start."""
        apply_game_overrides(self.pool, overrides)
        if overrides.settings is not None:
            self.config = overrides.settings
        if overrides.clear_replay:
            raise ConfigError("clear_replay: PQN has no replay; leave it out")

    def policy(self, member: int = 0) -> Policy:
        """Return what plays; it never changes again."""
        return self.playing.policy(self.updates)

    def snapshot(self, member: int = 0) -> Snapshot:
        """Copy what the next update depends on: weights, optimizer, games, open decisions."""
        saved = self.playing.snapshot(self.updates, self.samples)
        return replace(saved, tensors={**saved.tensors, OPTIMIZER: self.optimizer.tensors()})

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put a fresh learner of the same configuration where the snapshot was taken."""
        self.playing.restore(snapshot, fresh=not self.updates)
        self.load(snapshot)

    def load(self, snapshot: Snapshot) -> None:
        """Go on with the optimizer and the counts of a snapshot."""
        self.optimizer.load(snapshot.tensors.get(OPTIMIZER, {}))
        self.updates, self.samples = snapshot.meta["update"], snapshot.meta["samples"]

    def dry_run(self) -> list[Report]:
        """Do the work of an update with games that cost nothing, and put everything back."""
        return [self.playing.dry_run(self, self.hparams_at(Moment(self.collector.decisions, 0.0)))]
