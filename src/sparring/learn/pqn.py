"""PQN on one page: Q-learning from fresh rollouts, without replay and target network.

An update in the order of execution: exploration, rollout, lambda-returns, epochs of minibatches,
loss, report. Targets are the lambda-returns of Peng's Q(lambda). Layer norm (net.norm) keeps
training stable without a target network.
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
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.net import HeadOutputs
from sparring.nets.policy import BY_VALUE, DUELING, Policy
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

EPS = 1e-8
"""Of Adam."""


@dataclass(frozen=True)
class PQNHparams(ScheduledValues):
    """Scheduled values of `DQNConfig` in one update."""

    lr: float
    gamma: float
    q_lambda: float
    epsilon: float
    max_grad_norm: float


class PQN:
    """The learner: a Q-network that is trained on every rollout."""

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
            lambda forward: Exploring(forward, pool.rules, seed, greedy=True, keep=self.max_q),
            ("value",),
            policy_meta={BY_VALUE: True, DUELING: config.dueling},
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
        """Collect a rollout and learn from it."""
        hparams = self.hparams_at(Moment(self.collector.decisions, progress))
        with self.playing.best_matmul():
            rollout_stats = self.collector.collect(self.updates)
            stats = self.update(hparams)
        return [self.playing.report({**stats, **rollout_stats}, self.samples)]

    def hparams_at(self, moment: Moment) -> PQNHparams:
        """Evaluate all schedules, and set epsilon of every game, spread as in Ape-X."""
        hparams = PQNHparams.at(self.config, moment)
        spread, games = self.config.epsilon_spread, self.pool.num_games
        self.exploring.set_epsilon(spread_epsilon(hparams.epsilon, spread, games))
        return hparams

    def update(self, hparams: PQNHparams) -> dict[str, float]:
        """Learn from the rollout; pending transitions stay for the next."""
        rollout, phases = self.collector.rollout, self.phases
        with phases("advantage"):
            samples, returns = self.lambda_returns(hparams)
        arrays = {"obs": rollout.obs, "mask": rollout.mask, "action": rollout.action}
        arrays = {name: array[samples] for name, array in arrays.items()} | {"returns": returns}
        with phases("transfer"):
            device = self.playing.device
            data = {name: torch.from_numpy(one).to(device) for name, one in arrays.items()}
        with phases("update"):
            metrics = self.epochs(data, hparams)
        stats = {f"losses/{name}": mean for name, mean in mean_metrics(metrics).items()}
        stats |= {
            "learning/lr": hparams.lr,
            "learning/optimizer_steps": float(len(metrics)),
            "learning/samples": float(len(samples)),
            "losses/q": float(rollout.columns["value"][samples].mean()),
            "learning/gamma": hparams.gamma,
            "learning/epsilon": hparams.epsilon,
            "learning/native": 0.0,
            "learning/decisions": float(rollout.decisions()),
            "charts/forced": float(rollout.skipped.sum()),
        }
        update_normalizer(self.net, self.collector)  # acting and learning saw the same numbers
        self.samples += len(samples)
        self.updates += 1
        with phases("stepping"):
            self.collector.keep_pending()
        return stats

    def max_q(self, heads: HeadOutputs, mask: Tensor) -> dict[str, npt.NDArray[np.float32]]:
        """Return the largest Q of each row over legal actions; rollouts store it as "value"."""
        legal = mask.to(heads[POLICY].device)
        q = q_values(heads[POLICY], heads[VALUE], legal, dueling=self.config.dueling)
        return {"value": q.amax(-1).cpu().numpy()}

    @torch.no_grad()
    def lambda_returns(
        self, hparams: PQNHparams
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
        """Return the places of complete transitions, and their lambda-returns."""
        rollout, transitions = self.collector.rollout, self.collector.transitions
        truncations = rollout.truncations
        if truncations.obs:  # bootstrap
            obs, mask = np.concatenate(truncations.obs), np.concatenate(truncations.mask)
            final = self.max_q(self.forward(torch.from_numpy(obs)), torch.from_numpy(mask))
            truncations.set_values(rollout, final["value"])
        samples = self.collector.link(hparams.gamma, self.config.gamma_into)
        value = rollout.columns["value"]
        advantage = transitions.advantages(value, hparams.q_lambda)[samples]
        return samples, advantage + value[samples]

    def epochs(self, data: Mapping[str, Tensor], hparams: PQNHparams) -> list[Metrics]:
        """Train in epochs of shuffled minibatches; return the metrics of every step."""
        rng, transforms = shuffle_rng(self.seed, self.updates), self.playing.transforms.in_place
        samples = RolloutSamples(data, self.config.minibatch, rng, (), transforms)
        metrics: list[Metrics] = []
        for epoch in range(self.config.epochs):
            for minibatch in samples.epoch(self.updates, epoch, SINGLE):
                try:
                    metrics.append(self.optimizer.step(minibatch, hparams, self.loss, SINGLE))
                except DivergedError as error:
                    raise DivergedError(f"update {self.updates}: {error}") from None
        return metrics

    def loss(
        self, minibatch: Mapping[str, Tensor], hparams: PQNHparams
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the Huber or squared error of Q(taken action) against the lambda-return."""
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
        apply_game_overrides(self.pool, overrides)
        if overrides.settings is not None:
            self.config = overrides.settings
        if overrides.clear_replay:
            raise ConfigError("clear_replay: PQN has no replay; leave it out")

    def policy(self, member: int = 0) -> Policy:
        return self.playing.policy(self.updates)

    def snapshot(self, member: int = 0) -> Snapshot:
        saved = self.playing.snapshot(self.updates, self.samples)
        return replace(saved, tensors={**saved.tensors, OPTIMIZER: self.optimizer.tensors()})

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        self.playing.restore(snapshot, fresh=not self.updates)
        self.load(snapshot)

    def load(self, snapshot: Snapshot) -> None:
        self.optimizer.load(snapshot.tensors.get(OPTIMIZER, {}))
        self.updates, self.samples = snapshot.meta["update"], snapshot.meta["samples"]

    def dry_run(self) -> list[Report]:
        return [self.playing.dry_run(self, self.hparams_at(Moment(self.collector.decisions, 0.0)))]
