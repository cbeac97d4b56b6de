"""Soft actor-critic from replay on one page, in the order of execution; also REDQ.

The policy network is the actor; critics and a temperature (entropy coefficient) are trained with
it. REDQ is the same page with other settings: more critics, of which each target draws a few, many
steps of them for one of the policy, which raises their mean. Losses are in `learn.losses`.
`SAC.learn_critics` and `SAC.learn_actor` are `loss.backward()`; `learn.backends.native_replay` does
the same in native code, `learn.fused.sac` on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sparring import _native
from sparring.config import CollectConfig, NetConfig, ReplayConfig, SACConfig
from sparring.errors import StateError
from sparring.learn.acting import Exploring
from sparring.learn.backends.native_replay import NativeSteps
from sparring.learn.experience import Experience, Losses, mean_losses
from sparring.learn.learner import Overrides, Report, Snapshot, apply_game_overrides
from sparring.learn.losses import (
    Temperature,
    actor_loss,
    critic_loss,
    critic_target,
    discrete_actor_loss,
    discrete_critic_target,
    drawn_critics,
    entropy_target,
    gather_q,
    squashed_sample,
    step_noise,
    temperature_loss,
)
from sparring.learn.plan import ScheduledValues
from sparring.learn.playing import SelfPlay, copied
from sparring.learn.replay import ReplayBatch
from sparring.nets.critics import CRITICS, Critics
from sparring.nets.distribution import masked_log_probs
from sparring.nets.heads import POLICY
from sparring.nets.policy import VALUES, Policy
from sparring.nets.run.native import BF16, PackedAdam, PackedParameters
from sparring.nets.run.native_critics import NativeCritics, native_critics_unsupported_reason
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment


@dataclass(frozen=True)
class SACHparams(ScheduledValues):
    """Scheduled values of `SACConfig` in one rollout."""

    lr: float
    critic_lr: float
    temperature_lr: float
    gamma: float
    tau: float
    max_grad_norm: float


class SAC:
    """The learner: actor, critics, temperature, and a replay buffer."""

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: SACConfig,
        replay: ReplayConfig,
        net: NetConfig,
        *,
        seed: int = 0,
        threads: int = 1,
        **options: Any,
    ) -> None:
        assert not pool.rules.box or (net.squash and net.std == "predicted")
        self.playing = playing = SelfPlay(
            pool,
            collect,
            net,
            lambda forward: Exploring(forward, pool.rules, seed, greedy=False),
            policy_meta={VALUES: False},  # the actor has no value head that is trained
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
        assert isinstance(playing.actor, Exploring)
        self.exploring = playing.actor
        self.net, self.forward, self.device = playing.net, playing.forward, playing.device
        self.critics = Critics(
            self.net.inputs,
            config.critic_hidden or net.hidden,
            activation=net.activation,
            norm=config.critic_norm,
            count=config.critics,
            normalizer=self.net.normalizer,
        ).to(self.device)
        self.temperature = Temperature(config).to(self.device)
        self._make_optimizers(threads)
        self.set_hparams(Moment(0, 0.0))

    def _make_optimizers(self, threads: int) -> None:
        """Pack the weights of each optimizer into one array, and choose native code or torch."""
        self.head: Callable[[Tensor], Tensor] = lambda obs: self.forward(obs)[POLICY]
        """The actor's policy head, with gradients."""
        self.q_nets: Critics | NativeCritics = self.critics
        self.native: NativeSteps | None = None
        critics, temperature = PackedParameters(self.critics), PackedParameters(self.temperature)
        custom = type(self) is not SAC  # a subclass may have other losses, which torch computes
        actor = None if custom else self.forward.go_native(threads)
        if actor is None:
            self.actor_adam, self.critic_adam = (
                PackedAdam(PackedParameters(self.net)),
                PackedAdam(critics),
            )
            self.temperature_adam = PackedAdam(temperature)
            return
        self.head = lambda obs: actor.forward_with_grad(obs)[POLICY]
        work, tell = _native.PPOUpdate(threads), None
        if not native_critics_unsupported_reason(self.critics):
            bf16 = self.forward.arithmetic == BF16
            self.q_nets = NativeCritics(self.critics, threads=threads, bf16=bf16)
            tell = self.q_nets.mark_changed
            if self.net.box and self.critics.count == CRITICS:
                self.native = NativeSteps(actor, self.q_nets, temperature.grad)
        self.actor_adam = PackedAdam(actor.packed, native=work, on_change=actor.mark_changed)
        self.critic_adam = PackedAdam(critics, native=work, on_change=tell)
        self.temperature_adam = PackedAdam(temperature, native=work)

    # An update

    def iterate(self, progress: float) -> list[Report]:
        """Collect rollouts and learn from the replay buffer in turns."""
        experience, losses = self.experience, list[Losses]()
        decisions, steps = experience.decisions, experience.steps
        rollout_stats: dict[str, float] = {}
        with self.forward.best_matmul():
            for index in range(experience.rounds):  # `rollout_stats` accumulate over rounds
                moment = Moment(experience.decisions, progress, experience.episodes)
                hparams = self.set_hparams(moment)
                self.exploring.set_epsilon(1.0 if experience.is_random_warmup else 0.0)
                rollout_stats = experience.collect(
                    moment, self.hparams.gamma, self.config, reset_stats=not index
                )
                losses += experience.learn(moment, self.step)
        self.updates += 1
        stats = mean_losses(losses) | {f"learning/{name}": x for name, x in hparams.items()}
        stats |= experience.stats(decisions, steps) | rollout_stats
        return [self.playing.report(stats, experience.samples)]

    def set_hparams(self, moment: Moment) -> dict[str, float]:
        """Evaluate all schedules; return their metrics."""
        self.hparams = hparams = SACHparams.at(self.config, moment)
        self.actor_adam.lr, self.critic_adam.lr = hparams.lr, hparams.critic_lr
        self.temperature_adam.lr = hparams.temperature_lr
        return {
            "lr": hparams.lr,
            "critic_lr": hparams.critic_lr,
            "gamma": hparams.gamma,
            "temperature": self.temperature.value(),
        }

    @torch.enable_grad()
    def step(self, samples: ReplayBatch) -> tuple[Losses, Tensor]:
        """Make a step of the critics, the actor, the temperature and the target critics.

        Critic target and actor loss use the temperature from before this step; the temperature is
        updated by the entropy before the actor's step. Return losses and TD errors per sample.
        """
        samples, noise, backend = samples.to(self.device), self._noise(), self._backend()
        temperature, target = self.temperature.value(), self.target_entropy(samples.mask)
        loss, error = backend.learn_critics(samples, noise, temperature)
        self._step(self.critic_adam, loss, "critic_loss")
        losses: dict[str, Tensor | float] = {"critic_loss": loss}
        if (self.experience.steps + 1) % self.config.policy_every == 0:
            policy_loss, entropy = backend.learn_actor(samples, noise, temperature, target)
            self._step(self.actor_adam, policy_loss, "policy_loss")
            if not self.config.temperature:  # not fixed
                self._step(self.temperature_adam, entropy, "entropy")
            losses |= {"policy_loss": policy_loss, "entropy": entropy}
        backend.update_target(self.hparams.tau)
        return losses, error

    def _backend(self) -> SAC | NativeSteps:
        """Return native code if it is there and has the losses of the settings."""
        all_of_them = self.config.target_critics == self.critics.count
        return self.native if self.native and all_of_them and self.config.actor_q == "min" else self

    def target_entropy(self, mask: Tensor) -> Tensor | float:
        if self.net.box:
            return self.config.target_entropy or -float(self.net.box)
        return entropy_target(mask, self.config)

    def learn_critics(
        self, samples: ReplayBatch, noise: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        """Fill the critics' gradient; return the loss and the TD error per sample.

        noise: [2, batch, box], for actions at `obs` and at `next_obs`.
        """
        target = self.targets(samples, noise, temperature)
        inputs = self.critics.widen(samples.obs)
        if self.net.box:
            q = self.q_nets(inputs, samples.action)
        else:
            q = gather_q(self.q_nets(inputs), samples.action)
        loss, error = critic_loss(q, target, samples.weight)
        self.critic_adam.packed.grad.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach(), error

    @torch.no_grad()
    def targets(self, samples: ReplayBatch, noise: Tensor, temperature: float) -> Tensor:
        """Soft Bellman targets, see `critic_target`."""
        reward, discount = samples.reward, samples.discount
        inputs = self.critics.widen(samples.next_obs)
        head = self.forward(samples.next_obs)[POLICY].float()
        if self.net.box:
            action, log_prob = squashed_sample(head, noise[1])
            next_q = self._chosen(self.q_nets.target_q(inputs, action), -2)
            return critic_target(reward, discount, next_q, log_prob, temperature)
        log_probs = masked_log_probs(head, samples.next_mask)
        next_q = self._chosen(self.q_nets.target_q(inputs), -3)
        return discrete_critic_target(reward, discount, next_q, log_probs, temperature)

    def _chosen(self, q: Tensor, dim: int) -> Tensor:
        """Return the Q values of the critics that this step's target uses."""
        count, chosen_count = self.critics.count, self.config.target_critics
        chosen = drawn_critics(count, chosen_count, self.seed, self.experience.steps)
        return q if chosen is None else q.index_select(dim, chosen.to(q.device))

    def learn_actor(
        self, samples: ReplayBatch, noise: Tensor, temperature: float, target: Tensor | float
    ) -> tuple[Tensor, Tensor]:
        """Fill the gradients of actor and temperature; return the loss and the mean entropy.

        The critics' weights get no gradient here. target: the target entropy.
        """
        inputs = self.critics.widen(samples.obs)
        head = self.head(samples.obs).float()
        if self.net.box:
            action, log_prob = squashed_sample(head, noise[0])
            q = self.q_nets.forward_frozen(inputs, action)
            loss = actor_loss(q, log_prob, temperature, of=self.config.actor_q)
            entropy = -log_prob
        else:
            log_probs = masked_log_probs(head, samples.mask)
            q = self.q_nets.forward_frozen(inputs)
            loss, entropy = discrete_actor_loss(q, log_probs, temperature, of=self.config.actor_q)
        self.actor_adam.packed.grad.zero_()
        self.temperature_adam.packed.grad.zero_()
        total = loss + temperature_loss(self.temperature.log, entropy.detach(), target)
        total.backward()  # type: ignore[no-untyped-call]
        return loss.detach(), entropy.detach().mean()

    def update_target(self, tau: float) -> None:
        """Soft update of the target critics."""
        self.critics.update_targets(tau)

    def _noise(self) -> Tensor:
        """Standard normal noise for both action samples of a step, [2, batch, box]."""
        shape = 2, self.experience.config.batch, self.net.box
        return step_noise(shape, self.seed, self.experience.steps).to(self.device)

    def _step(self, adam: PackedAdam, loss: Tensor | float, name: str) -> None:
        """Make an optimizer step; raise if the loss or the gradient is not finite."""
        norm = adam.clip_and_step(self.hparams.max_grad_norm) if math.isfinite(loss) else math.nan
        if not math.isfinite(norm):
            losses = {name: loss, "gradient norm": norm}
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
        """Copy critics, target critics, temperature, and the state of all optimizers."""
        modules = {"critics": self.critics, "temperature": self.temperature}
        return {
            **{name: copied(module) for name, module in modules.items()},
            "optimizer": self.actor_adam.tensors(),
            "critic_optimizer": self.critic_adam.tensors(),
            "temperature_optimizer": self.temperature_adam.tensors(),
        }

    def load_learner_state(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Restore `learner_state`; without critics, initialize them."""
        if "critics" not in tensors:
            tensors = {**tensors, **self._initial_state()}
        try:
            self.critics.load_state_dict(dict(tensors["critics"]))
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise StateError(f"the checkpoint holds other critics: {reason}") from None
        self.temperature.load_state_dict(dict(tensors["temperature"]))
        self.actor_adam.load(tensors["optimizer"])
        self.critic_adam.load(tensors["critic_optimizer"])
        self.temperature_adam.load(tensors["temperature_optimizer"])

    def _initial_state(self) -> dict[str, dict[str, Tensor]]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + 1_000_003 * (self.updates + 1))
            self.critics.reset_parameters()
        return {
            "critics": copied(self.critics),
            "temperature": copied(Temperature(self.config)),
            **{name: {} for name in ("optimizer", "critic_optimizer", "temperature_optimizer")},
        }

    def dry_run(self) -> list[Report]:
        return [self.experience.dry_run(self)]

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        apply_game_overrides(self.pool, overrides)
        if overrides.settings is not None:
            self.config = overrides.settings
        if overrides.clear_replay:
            self.experience.clear()
