"""Twin delayed DDPG (TD3) from replay on one page, in the order of execution.

The policy network is the actor: tanh of the means of its head, without a spread. Two critics and
target networks of all three are trained with it. `TD3.learn_critics` and `TD3.learn_actor` are
`loss.backward()`, through native passes where the networks have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sparring import _native
from sparring.config import CollectConfig, NetConfig, ReplayConfig, TD3Config
from sparring.errors import StateError
from sparring.learn.acting import Noisy
from sparring.learn.experience import Experience, Losses, mean_losses
from sparring.learn.forward import Forward
from sparring.learn.learner import Overrides, Report, Snapshot, apply_game_overrides
from sparring.learn.losses import critic_loss, critic_target, smoothed_action, step_noise
from sparring.learn.plan import ScheduledValues
from sparring.learn.playing import SelfPlay, copied, share_normalizer
from sparring.learn.replay import ReplayBatch
from sparring.nets.critics import Critics
from sparring.nets.heads import POLICY
from sparring.nets.make import make_net
from sparring.nets.policy import DETERMINISTIC, VALUES, Policy
from sparring.nets.run.native import BF16, PackedAdam, PackedParameters
from sparring.nets.run.native_critics import NativeCritics, native_critics_unsupported_reason
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment


@dataclass(frozen=True)
class TD3Hparams(ScheduledValues):
    """Scheduled values of `TD3Config` in one rollout."""

    lr: float
    critic_lr: float
    gamma: float
    tau: float
    noise: float
    max_grad_norm: float


class TD3:
    """The learner: actor, critics, their target networks, and a replay buffer."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: TD3Config,
        replay: ReplayConfig,
        net: NetConfig,
        *,
        seed: int = 0,
        threads: int = 1,
        **options: Any,
    ) -> None:
        assert pool.rules.box and net.squash and not net.recurrent
        self.playing = playing = SelfPlay(
            pool,
            collect,
            net,
            lambda forward: Noisy(forward, pool.rules, seed),
            policy_meta={DETERMINISTIC: True, VALUES: False},  # no value head is trained
            rows_on="cpu",
            seed=seed,
            threads=threads,
            **options,
        )
        self.experience = Experience(playing, collect, replay)
        self.config, self.updates, self.seed = config, 0, seed
        self.rules, self.pool, self.collector = playing.rules, pool, playing.collector
        self.phases, self.slots, self.put = playing.phases, playing.slots, playing.put
        self.set_mixes, self.seated, self.exact = playing.set_mixes, playing.seated, playing.exact
        assert isinstance(playing.actor, Noisy)
        self.noisy = playing.actor
        self.net, self.forward, self.device = playing.net, playing.forward, playing.device
        self.critics = Critics(
            self.net.inputs,
            config.critic_hidden or net.hidden,
            activation=net.activation,
            norm=config.critic_norm,
            normalizer=self.net.normalizer,
        ).to(self.device)
        with torch.random.fork_rng(devices=[]):  # its initial weights are overwritten
            self.target = make_net(pool.rules, net, memory=pool.memory_bytes, threads=threads)
        self.target.to(self.device).load_state_dict(self.net.state_dict())
        share_normalizer(self.net, self.target)
        self.target.requires_grad_(False)
        self.target_forward = Forward(self.target, self.device, collect)
        self._make_optimizers(threads)
        self.set_hparams(Moment(0, 0.0))

    def _make_optimizers(self, threads: int) -> None:
        """Pack the weights of each optimizer into one array, and choose native passes or torch."""
        self.head: Callable[[Tensor], Tensor] = lambda obs: self.forward(obs)[POLICY]
        """The actor's policy head, with gradients."""
        self.q_nets: Critics | NativeCritics = self.critics
        critics = PackedParameters(self.critics)
        custom = type(self) is not TD3  # a subclass may have other losses, which torch computes
        actor = None if custom else self.forward.go_native(threads)
        if actor is None:
            packed, self.packed_target = map(PackedParameters, (self.net, self.target))
            self.actor_adam, self.critic_adam = PackedAdam(packed), PackedAdam(critics)
            return
        target = self.target_forward.go_native(threads)
        assert target
        self.head = lambda obs: actor.forward_with_grad(obs)[POLICY]
        work, tell = _native.PPOUpdate(threads), None
        if not native_critics_unsupported_reason(self.critics):
            bf16 = self.forward.arithmetic == BF16
            self.q_nets = NativeCritics(self.critics, threads=threads, bf16=bf16)
            tell = self.q_nets.mark_changed
        self.packed_target = target.packed
        self.actor_adam = PackedAdam(actor.packed, native=work, on_change=actor.mark_changed)
        self.critic_adam = PackedAdam(critics, native=work, on_change=tell)

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
                self.noisy.random = experience.is_random_warmup
                rollout_stats = experience.collect(
                    moment, self.hparams.gamma, self.config, reset_stats=not index
                )
                losses += experience.learn(moment, self.step)
        self.updates += 1
        names = ("lr", "critic_lr", "gamma", "noise")
        hparams = {f"learning/{name}": getattr(self.hparams, name) for name in names}
        stats = mean_losses(losses) | hparams
        stats |= experience.stats(decisions, steps) | rollout_stats
        return [self.playing.report(stats, experience.samples)]

    def set_hparams(self, moment: Moment) -> None:
        """Evaluate all schedules."""
        self.hparams = hparams = TD3Hparams.at(self.config, moment)
        self.actor_adam.lr, self.critic_adam.lr = hparams.lr, hparams.critic_lr
        self.noisy.noise = hparams.noise

    @torch.enable_grad()
    def step(self, samples: ReplayBatch) -> tuple[Losses, Tensor]:
        """Make a step of the critics, and every `policy_every` of them one of the actor.

        The target networks follow with the actor. Return losses and TD errors per sample.
        """
        samples = samples.to(self.device)
        loss, error = self.learn_critics(samples)
        self._step(self.critic_adam, loss, "critic_loss")
        losses: dict[str, Tensor | float] = {"critic_loss": loss, "td_error": error.mean()}
        if (self.experience.steps + 1) % self.config.policy_every == 0:
            losses["policy_loss"] = policy_loss = self.learn_actor(samples)
            self._step(self.actor_adam, policy_loss, "policy_loss")
            self.update_targets(self.hparams.tau)
        return losses, error

    def learn_critics(self, samples: ReplayBatch) -> tuple[Tensor, Tensor]:
        """Fill the critics' gradient; return the loss and the TD error per sample."""
        target = self.targets(samples)
        q = self.q_nets(self.critics.widen(samples.obs), samples.action)
        half, error = critic_loss(q, target, samples.weight)
        loss = 2 * half  # squared errors, as in the paper
        self.critic_adam.packed.grad.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach(), error

    @torch.no_grad()
    def targets(self, samples: ReplayBatch) -> Tensor:
        """n-step reward + discount * the smaller Q of the target actor's action with noise."""
        config, head = self.config, self.target_forward(samples.next_obs)[POLICY].float()
        noise = self._noise().to(self.device)
        action = smoothed_action(head, noise, std=config.target_noise, limit=config.target_clip)
        q = self.q_nets.target_q(self.critics.widen(samples.next_obs), action)
        return critic_target(samples.reward, samples.discount, q, torch.zeros_like(q[0]), 0.0)

    def learn_actor(self, samples: ReplayBatch) -> Tensor:
        """Fill the actor's gradient; return the loss, minus the Q of the first critic."""
        action = torch.tanh(self.head(samples.obs).float()[:, : self.rules.box])
        q = self.q_nets.forward_frozen(self.critics.widen(samples.obs), action)
        loss = -q[0].mean()
        self.actor_adam.packed.grad.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    @torch.no_grad()
    def update_targets(self, tau: float) -> None:
        """Soft update of the target critics and the target actor."""
        self.critics.update_targets(tau)
        self.packed_target.weight.lerp_(self.actor_adam.packed.weight, tau)

    def _noise(self) -> Tensor:
        """Standard normal noise of the target's actions [batch, box]."""
        shape = self.experience.config.batch, self.rules.box
        return step_noise(shape, self.seed, self.experience.steps)

    def _step(self, adam: PackedAdam, loss: Tensor, name: str) -> None:
        """Make an optimizer step; raise if the loss or the gradient is not finite."""
        norm = adam.clip_and_step(self.hparams.max_grad_norm) if math.isfinite(loss) else math.nan
        if not math.isfinite(norm):
            losses: Losses = {name: loss, "gradient norm": norm}
            raise self.experience.diverged(self.updates, losses)

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
        """Copy critics, target networks, and the state of both optimizers."""
        return {
            "critics": copied(self.critics),
            "target": copied(self.target),
            "optimizer": self.actor_adam.tensors(),
            "critic_optimizer": self.critic_adam.tensors(),
        }

    def load_learner_state(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Restore `learner_state`; without critics, initialize them.

        Before the actor's first step its target is the actor.
        """
        if "critics" not in tensors:
            tensors = {**tensors, **self._initial_state()}
        try:
            self.critics.load_state_dict(dict(tensors["critics"]))
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise StateError(f"the checkpoint holds other critics: {reason}") from None
        self.actor_adam.load(tensors["optimizer"])
        self.critic_adam.load(tensors["critic_optimizer"])
        has_steps = bool(tensors["optimizer"])
        self.target.load_state_dict(tensors["target"] if has_steps else self.net.state_dict())

    def _initial_state(self) -> dict[str, dict[str, Tensor]]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + 1_000_003 * (self.updates + 1))
            self.critics.reset_parameters()
        return {"critics": copied(self.critics), "optimizer": {}, "critic_optimizer": {}}

    def dry_run(self) -> list[Report]:
        return [self.experience.dry_run(self)]

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        apply_game_overrides(self.pool, overrides)
        if overrides.settings is not None:
            self.config = overrides.settings
        if overrides.clear_replay:
            self.experience.clear()
