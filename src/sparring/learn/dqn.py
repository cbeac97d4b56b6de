"""DQN from replay on one page: double, dueling, n-step, with action masks.

The policy head outputs action values (`learn.losses`), and the policy plays the best legal action.
An update is a few rounds of collecting and learning, with `replay.ratio` samples per decision.
`DQN.gradient` is `loss.backward()`; `learn.backends.native_replay` does the same in native code,
`learn.fused.dqn` on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sparring import _native
from sparring.config import CollectConfig, DQNConfig, NetConfig, ReplayConfig
from sparring.learn.acting import Exploring
from sparring.learn.backends.native_replay import NativeGradient
from sparring.learn.experience import Experience, Losses, mean_losses
from sparring.learn.forward import Forward
from sparring.learn.learner import Overrides, Report, Snapshot, apply_game_overrides
from sparring.learn.losses import dqn_loss, spread_epsilon, td_target
from sparring.learn.plan import ScheduledValues
from sparring.learn.playing import SelfPlay, copied, share_normalizer
from sparring.learn.replay import ReplayBatch
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.make import make_net
from sparring.nets.policy import BY_VALUE, DUELING, Policy
from sparring.nets.run.native import NativeNet, PackedAdam, PackedParameters
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment


@dataclass(frozen=True)
class DQNHparams(ScheduledValues):
    """Scheduled values of `DQNConfig` in one rollout."""

    lr: float
    gamma: float
    tau: float
    epsilon: float
    max_grad_norm: float


class DQN:
    """The learner: a Q-network, its target network, and a replay buffer."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: DQNConfig,
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
            policy_meta={BY_VALUE: True, DUELING: config.dueling},
            rows_on="cpu",
            seed=seed,
            threads=threads,
            **options,
        )
        self.experience = Experience(playing, collect, replay)
        self.config, self.updates = config, 0
        self.hparams = DQNHparams.at(config, Moment(0, 0.0))
        self.rules, self.pool, self.collector = playing.rules, pool, playing.collector
        self.phases, self.slots, self.put = playing.phases, playing.slots, playing.put
        self.set_mixes, self.seated, self.exact = playing.set_mixes, playing.seated, playing.exact
        assert isinstance(playing.actor, Exploring)
        self.exploring = playing.actor
        self.net, self.forward, self.device = playing.net, playing.forward, playing.device
        with torch.random.fork_rng(devices=[]):  # its initial weights are overwritten
            self.target = make_net(pool.rules, net, memory=pool.memory_bytes, threads=threads)
        self.target.to(self.device).load_state_dict(self.net.state_dict())
        share_normalizer(self.net, self.target)
        self.target.requires_grad_(False)
        self.target_forward = Forward(self.target, self.device, collect)
        self.native: NativeGradient | None = None
        custom = type(self) is not DQN  # a subclass may have another loss, which torch computes
        if native := None if custom else self.forward.go_native(threads):
            target = NativeNet(self.target, threads=threads, arithmetic=self.forward.arithmetic)
            self.native = NativeGradient(native, target, weighted=replay.prioritized)
            self.packed, self.packed_target = native.packed, target.packed
            work = _native.PPOUpdate(threads)
            self.optimizer = PackedAdam(self.packed, native=work, on_change=native.mark_changed)
        else:
            self.packed, self.packed_target = (
                PackedParameters(self.net),
                PackedParameters(self.target),
            )
            self.optimizer = PackedAdam(self.packed)

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
                gamma = self.hparams.gamma
                rollout_stats = experience.collect(
                    moment, gamma, self.config, reset_stats=not index
                )
                losses += experience.learn(moment, self.step)
        self.updates += 1
        hparams = {name: getattr(self.hparams, name) for name in ("lr", "gamma", "epsilon")}
        stats = mean_losses(losses) | {f"learning/{name}": x for name, x in hparams.items()}
        stats |= experience.stats(decisions, steps) | rollout_stats
        return [self.playing.report(stats, experience.samples)]

    def set_hparams(self, moment: Moment) -> None:
        """Evaluate all schedules."""
        self.hparams = DQNHparams.at(self.config, moment)
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
        if self.native:
            loss, mean_error, error = self.native.gradient(samples, self.config)
        else:
            loss, mean_error, error = self.gradient(samples)
        norm = math.nan
        if math.isfinite(loss):
            norm = self.optimizer.clip_and_step(self.hparams.max_grad_norm)
        losses = {"q_loss": loss, "td_error": mean_error, "grad_norm": norm}
        if not math.isfinite(norm):
            raise self.experience.diverged(self.updates, losses)
        self.update_target()
        return losses, error

    def gradient(self, samples: ReplayBatch) -> tuple[float, float, Tensor]:
        """Fill the gradient; return the loss, the mean TD error, and the TD error per sample."""
        samples, weighted = samples.to(self.device), self.experience.config.prioritized
        target = self.targets(samples)
        heads = self.forward(samples.obs)
        loss, error = dqn_loss(
            heads[POLICY],
            heads[VALUE],
            mask=samples.mask,
            action=samples.action,
            target=target,
            weight=samples.weight if weighted else None,
            dueling=self.config.dueling,
            huber=self.config.huber,
        )
        self.packed.grad.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach()), float(error.mean()), error

    @torch.no_grad()
    def targets(self, samples: ReplayBatch) -> Tensor:
        """n-step reward + discount * the target network's value of the best next action."""
        target = self.target_forward(samples.next_obs)
        online = self.forward(samples.next_obs) if self.config.double else target
        return td_target(
            target[POLICY],
            target[VALUE],
            selection_head=online[POLICY],
            mask=samples.next_mask,
            reward=samples.reward,
            discount=samples.discount,
            dueling=self.config.dueling,
        )

    @torch.no_grad()
    def update_target(self) -> None:
        """Soft update by tau, or a copy every `target_every` optimizer steps."""
        every, tau = self.config.target_every, self.hparams.tau
        if every:
            tau = float((self.experience.steps + 1) % every == 0)
        if self.native:
            self.native.update_target(tau)
        elif tau:
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
        """Restore `learner_state`; before the first optimizer step the target is the network."""
        self.optimizer.load(tensors["optimizer"])
        has_steps = bool(tensors["optimizer"])
        self.target.load_state_dict(tensors["target"] if has_steps else self.net.state_dict())

    def dry_run(self) -> list[Report]:
        return [self.experience.dry_run(self)]

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        apply_game_overrides(self.pool, overrides)
        if overrides.settings is not None:
            self.config = overrides.settings
            self.playing.policy_meta[DUELING] = self.config.dueling
        if overrides.clear_replay:
            self.experience.clear()
