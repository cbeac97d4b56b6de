"""Quantile DQN (QR-DQN) from replay on one page, with action masks.

The head `quantiles` learns the distribution of every action's return, as quantiles at the middles
of equal shares. The policy head is their mean: every step writes it, so that whatever plays, saves
or exports the network sees action values, as those of DQN. `QRDQN.gradient` is `loss.backward()`,
through native passes where the network has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sparring import _native
from sparring.config import CollectConfig, NetConfig, QRDQNConfig, ReplayConfig
from sparring.learn.acting import Exploring
from sparring.learn.experience import Experience, Losses, mean_losses
from sparring.learn.forward import Forward
from sparring.learn.learner import Overrides, Report, Snapshot, apply_game_overrides
from sparring.learn.losses import (
    ADAM_EPS_QUANTILES,
    by_quantile,
    quantile_loss,
    quantile_target,
    spread_epsilon,
)
from sparring.learn.plan import ScheduledValues
from sparring.learn.playing import SelfPlay, copied, share_normalizer
from sparring.learn.replay import ReplayBatch
from sparring.nets.heads import POLICY, QUANTILES
from sparring.nets.make import make_net
from sparring.nets.mlp import Perceptron
from sparring.nets.net import HeadOutputs
from sparring.nets.policy import BY_VALUE, DUELING, Policy
from sparring.nets.run.native import PackedAdam, PackedParameters
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment


@dataclass(frozen=True)
class QRDQNHparams(ScheduledValues):
    """Scheduled values of `QRDQNConfig` in one rollout."""

    lr: float
    gamma: float
    tau: float
    epsilon: float
    max_grad_norm: float


class QRDQN:
    """The learner: a network with quantiles, its target network, and a replay buffer."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: QRDQNConfig,
        replay: ReplayConfig,
        net: NetConfig,
        *,
        seed: int = 0,
        threads: int = 1,
        **options: Any,
    ) -> None:
        assert not pool.rules.box and not net.recurrent
        self.playing = playing = SelfPlay(
            pool,
            collect,
            net,
            lambda forward: Exploring(forward, pool.rules, seed, greedy=True),
            policy_meta={BY_VALUE: True, DUELING: False},
            rows_on="cpu",
            seed=seed,
            threads=threads,
            quantiles=config.quantiles,
            **options,
        )
        self.experience = Experience(playing, collect, replay)
        self.config, self.updates = config, 0
        self.hparams = QRDQNHparams.at(config, Moment(0, 0.0))
        self.rules, self.pool, self.collector = playing.rules, pool, playing.collector
        self.phases, self.slots, self.put = playing.phases, playing.slots, playing.put
        self.set_mixes, self.seated, self.exact = playing.set_mixes, playing.seated, playing.exact
        assert isinstance(playing.actor, Exploring) and isinstance(playing.net, Perceptron)
        self.exploring = playing.actor
        self.net, self.forward, self.device = playing.net, playing.forward, playing.device
        with torch.random.fork_rng(devices=[]):  # its initial weights are overwritten
            heads, memory = self.net.heads, pool.memory_bytes
            self.target = make_net(pool.rules, net, heads=heads, memory=memory, threads=threads)
        write_means(self.net)
        self.target.to(self.device).load_state_dict(self.net.state_dict())
        share_normalizer(self.net, self.target)
        self.target.requires_grad_(False)
        self.target_forward = Forward(self.target, self.device, collect)
        self.heads: Callable[[Tensor], HeadOutputs] = self.forward
        """All heads, with gradients."""
        custom = type(self) is not QRDQN  # a subclass may need other passes
        options = {"eps": ADAM_EPS_QUANTILES}
        if native := None if custom else self.forward.go_native(threads):
            target = self.target_forward.go_native(threads)
            assert target
            self.packed, self.packed_target = native.packed, target.packed
            self.heads = native.forward_with_grad
            options |= {"native": _native.PPOUpdate(threads), "on_change": native.mark_changed}
        else:
            self.packed, self.packed_target = map(PackedParameters, (self.net, self.target))
        self.optimizer = PackedAdam(self.packed, **options)

    # An update

    def iterate(self, progress: float) -> list[Report]:
        """Collect rollouts and learn from the replay buffer in turns."""
        experience, losses = self.experience, list[Losses]()
        decisions, steps = experience.decisions, experience.steps
        rollout_stats: dict[str, float] = {}
        with self.forward.best_matmul():
            for index in range(experience.rounds):  # `rollout_stats` accumulate over rounds
                moment = Moment(experience.decisions, progress, experience.episodes)
                self.set_hparams(moment)
                self.set_epsilon()
                rollout_stats = experience.collect(
                    moment, self.hparams.gamma, self.config, reset_stats=not index
                )
                losses += experience.learn(moment, self.step)
        self.updates += 1
        hparams = {name: getattr(self.hparams, name) for name in ("lr", "gamma", "epsilon")}
        stats = mean_losses(losses) | {f"learning/{name}": x for name, x in hparams.items()}
        stats |= experience.stats(decisions, steps) | rollout_stats
        return [self.playing.report(stats, experience.samples)]

    def set_hparams(self, moment: Moment) -> None:
        """Evaluate all schedules."""
        self.hparams = QRDQNHparams.at(self.config, moment)
        self.optimizer.lr = self.hparams.lr

    def set_epsilon(self) -> None:
        """Set epsilon of every game, spread as in Ape-X; 1 during a random warmup."""
        spread, games = self.config.epsilon_spread, self.pool.num_games
        epsilon = 1.0 if self.experience.is_random_warmup else self.hparams.epsilon
        self.exploring.set_epsilon(spread_epsilon(epsilon, spread, games))

    @torch.enable_grad()
    def step(self, samples: ReplayBatch) -> tuple[Losses, Tensor]:
        """Make an optimizer step and update the target; return losses and TD errors per sample.

        Raise before the step if the loss is not finite.
        """
        samples = samples.to(self.device)
        loss, error = self.gradient(samples)
        norm = math.nan
        if math.isfinite(loss):
            norm = self.optimizer.clip_and_step(self.hparams.max_grad_norm)
        losses = {"quantile_loss": loss, "td_error": float(error.mean()), "grad_norm": norm}
        if not math.isfinite(norm):
            raise self.experience.diverged(self.updates, losses)
        write_means(self.net)
        self.update_target()
        return losses, error

    def gradient(self, samples: ReplayBatch) -> tuple[float, Tensor]:
        """Fill the gradient; return the loss, and the error of the mean per sample."""
        target = self.targets(samples)
        quantiles = self.quantiles(self.heads(samples.obs))
        loss, error = quantile_loss(
            quantiles,
            action=samples.action,
            target=target,
            weight=samples.weight if self.experience.config.prioritized else None,
            huber=self.config.huber,
        )
        self.packed.grad.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach()), error

    @torch.no_grad()
    def targets(self, samples: ReplayBatch) -> Tensor:
        """n-step reward + discount * the target network's quantiles of the best next action."""
        quantiles = self.quantiles(self.target_forward(samples.next_obs))
        choosing = quantiles
        if self.config.double:
            choosing = self.quantiles(self.forward(samples.next_obs))
        return quantile_target(
            quantiles,
            means=choosing.mean(-2),
            mask=samples.next_mask,
            reward=samples.reward,
            discount=samples.discount,
        )

    def quantiles(self, heads: HeadOutputs) -> Tensor:
        """Return [batch, quantiles, actions] in float32."""
        return by_quantile(heads[QUANTILES], self.rules.actions)

    @torch.no_grad()
    def update_target(self) -> None:
        """Soft update by tau, or a copy every `target_every` optimizer steps."""
        every, tau = self.config.target_every, self.hparams.tau
        if every:
            tau = float((self.experience.steps + 1) % every == 0)
        if tau:
            self.packed_target.weight.lerp_(self.packed.weight, tau)

    # The rest of `Learner`

    def policy(self, member: int = 0) -> Policy:
        return self.playing.policy(self.updates)

    def snapshot(self, member: int = 0) -> Snapshot:
        return self.experience.snapshot(self.updates, self.learner_state())

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        self.updates = self.playing.restore(snapshot, fresh=not self.updates)
        self.load_learner_state(snapshot.tensors)
        self.experience.restore(snapshot)

    def learner_state(self) -> dict[str, dict[str, Tensor]]:
        """Copy the target network and Adam's state."""
        return {"target": copied(self.target), "optimizer": self.optimizer.tensors()}

    def load_learner_state(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Restore `learner_state`; before the first optimizer step the target is the network.

        The policy head may come from another run then, and quantiles are moved around it.
        """
        self.optimizer.load(tensors["optimizer"])
        has_steps = bool(tensors["optimizer"])
        if not has_steps:
            center_quantiles(self.net)
        self.target.load_state_dict(tensors["target"] if has_steps else self.net.state_dict())

    def dry_run(self) -> list[Report]:
        return [self.experience.dry_run(self)]

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        apply_game_overrides(self.pool, overrides)
        if overrides.settings is not None:
            self.config = overrides.settings
        if overrides.clear_replay:
            self.experience.clear()


def heads_of(net: Perceptron) -> list[tuple[Tensor, Tensor]]:
    """Return weight and bias of the policy head, each with that of the quantiles, by quantile."""
    policy, quantiles = (net.get_submodule(f"{head}_head") for head in (POLICY, QUANTILES))
    assert isinstance(policy, torch.nn.Linear) and isinstance(quantiles, torch.nn.Linear)
    pairs = (policy.weight, quantiles.weight), (policy.bias, quantiles.bias)
    return [(mine, theirs.view(-1, *mine.shape)) for mine, theirs in pairs]


@torch.no_grad()
def write_means(net: Perceptron) -> None:
    """Make the policy head the mean of the quantiles; a mean of linear heads is linear."""
    for policy, quantiles in heads_of(net):
        policy.copy_(quantiles.mean(0))


@torch.no_grad()
def center_quantiles(net: Perceptron) -> None:
    """Move the quantiles so that their mean is the policy head, if it is not."""
    for policy, quantiles in heads_of(net):
        mean = quantiles.mean(0)
        if not torch.equal(policy, mean):
            quantiles.add_(policy - mean)
