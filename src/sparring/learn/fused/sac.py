"""SAC on a GPU: the list of launches of `learn.sac`, for all members of a population at once.

tests/cuda/test_fused_replay.py holds the two equal, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparring.config import CollectConfig, NetConfig, ReplayConfig, SACConfig
from sparring.errors import StateError
from sparring.learn.backends.torch import optimizer_state
from sparring.learn.fused.adam import KINDS, FlatAdam
from sparring.learn.fused.experience import FusedExperience, head_of
from sparring.learn.fused.games import Games
from sparring.learn.fused.kernels import REPLAY_SOURCE
from sparring.learn.fused.playing import FusedSelfPlay
from sparring.learn.learner import Report, Snapshot
from sparring.learn.losses import (
    actor_loss,
    critic_loss,
    critic_target,
    discrete_actor_loss,
    discrete_critic_target,
    entropy_target,
    gather_q,
    squashed_sample,
)
from sparring.learn.plan import check_shared
from sparring.nets.critics import Critics
from sparring.nets.distribution import masked_log_probs
from sparring.nets.policy import VALUES
from sparring.schedule import Moment

ANY_NORM = 1e30
"""Clip norm that clips no gradient."""


class Flat:
    """Weights of a module for `FlatAdam`: one row per member."""

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        self.weight, self.size = weight, weight.shape[1]
        self.compute = torch.zeros_like(weight, dtype=dtype)
        """Not used."""
        self.grad = torch.zeros_like(weight)
        self.scale = torch.ones(self.size, device=weight.device)


HPARAMS = ("lr", "critic_lr", "temperature_lr", "gamma", "tau", "max_grad_norm")
LOSSES = ("critic_loss", "policy_loss", "entropy")


class FusedSAC:
    """The learner: actor, critics, temperature and a replay buffer for each member."""

    def __init__(
        self,
        games: Games,
        collect: CollectConfig,
        configs: Sequence[SACConfig],
        replay: ReplayConfig,
        net: NetConfig,
        **options: Any,
    ) -> None:
        """Play and learn from games; their seeds are those of the members.

        configs: one per member. options: by_role, slots and graphs of `FusedSelfPlay`.
        """
        assert not games.rules.box or (net.squash and net.std == "predicted")
        check_shared("sac", configs)
        self.config = configs[0]
        policy_meta = {VALUES: False}
        self.playing = playing = FusedSelfPlay(
            games,
            collect,
            net,
            policy_meta=policy_meta,
            source=REPLAY_SOURCE,
            final_legal=True,
            **options,
        )
        self.experience = FusedExperience(
            playing, collect, replay, configs, hparams=HPARAMS, losses=LOSSES
        )
        self.games, self.pool, self.rules = games, games.pool, games.rules
        self.net, self.phases, self.exact = playing.net, playing.phases, playing.exact
        self.slots, self.put, self.set_mixes = playing.slots, playing.put, playing.set_mixes
        self.seated, self.policy = playing.seated, playing.policy
        self.replay, self.apply_overrides = self.experience.replay, self.experience.apply_overrides
        self.members, self.device = playing.members, playing.device
        self.learning = self.net.make_pass(replay.batch, learn=True)
        """Actor at the observations of a batch."""
        self.online_next = self.net.make_pass(replay.batch, learn=False)
        """Actor at the next observations."""
        self.adam = self.experience.adam_for(self.net)
        self.critics = self._make_critics()
        self._critics = Flat(self.critics.flat.detach().view(self.members, -1), self.net.dtype)
        self.critic_adam = self.experience.adam_for(self._critics)
        self.temperatures = [config.temperature or config.initial_temperature for config in configs]
        """Temperatures before the last update."""
        logs = [[math.log(temperature)] for temperature in self.temperatures]
        self._log = Flat(torch.tensor(logs, device=self.device), self.net.dtype)
        self.temperature_adam = self.experience.adam_for(self._log)
        is_learned = [[float(not config.temperature)] for config in configs]
        self._is_learned = torch.tensor(is_learned, device=self.device)
        """1 for members whose temperature is learned, 0 if it is fixed."""
        shape = self.members, replay.batch, 2 * self.rules.box
        self._noise = torch.zeros(shape, device=self.device)
        """Noise of the actions at `obs`, then at `next_obs`."""

    def _make_critics(self) -> Critics:
        """Make critics; each member gets the initial weights of a single run with its seed."""
        critics = self._critics_of(self.members)
        for member, seed in enumerate(self.games.seeds):
            torch.manual_seed(seed)
            self.playing.fresh_net()  # a single run makes the actor first
            critics.flat.data[member] = self._critics_of(1).flat.data[0]
        critics.target.copy_(critics.flat.data)
        return critics.to(self.device)

    def _critics_of(self, members: int) -> Critics:
        net = self.net
        return Critics(
            net.inputs,
            self.config.critic_hidden or net.net_config.hidden,
            activation=net.net_config.activation,
            norm=self.config.critic_norm,
            members=members,
        )

    @property
    def updates(self) -> int:
        return self.playing.updates

    def iterate(self, progress: float) -> list[Report]:
        """Collect and learn; return one report per member."""
        self.temperatures = self._log.weight[:, 0].exp().tolist()
        reports = self.experience.update(progress, self.set_hparams, self.step)
        for report, temperature in zip(reports, self.temperatures, strict=True):
            if report.stats:
                report.stats["learning/temperature"] = temperature
        return reports

    def set_hparams(self, moments: Sequence[Moment]) -> list[dict[str, float]]:
        """Copy scheduled values to the device; return their metrics by member."""
        hparams = []
        for config, moment in zip(self.experience.settings, moments, strict=True):
            found = {name: getattr(config, name).at(moment) for name in HPARAMS}
            hparams.append({**found, "max_grad_norm": found["max_grad_norm"] or ANY_NORM})
        epsilon = [np.zeros(self.games.each, np.float32) for _ in hparams]
        return self.experience.set_hparams(moments, hparams, epsilon)

    def step(self) -> None:
        """Make a step of critics, actors, temperatures and target critics.

        All of them use the temperatures from before the step.
        """
        replay, temperature = self.replay, self._log.weight.exp()
        if self.rules.box:
            replay.noise(2 * self.rules.box, self._noise)
        inputs = self.critics.widen(replay.rows(replay.picked))
        target = self._targets(temperature)
        loss, error = critic_loss(self._taken(inputs), target, replay.weight)
        (grad,) = torch.autograd.grad(loss.sum(), [self.critics.flat])
        self._critics.grad.copy_(grad.view(self.members, -1))
        self.experience.step_with(self.critic_adam, "critic_lr")
        policy_loss, entropy, target_entropy = self._learn_actor(inputs, temperature)
        self.experience.step_with(self.adam, "lr")
        self._log.grad.copy_((entropy - target_entropy).mean(-1, keepdim=True) * self._is_learned)
        self.experience.step_with(self.temperature_adam, "temperature_lr")
        self.critics.update_targets(
            (self.experience.hparam("tau") * self.experience.active)[:, None, None]
        )
        replay.reprioritize(error)
        self.experience.add_losses(
            critic_loss=loss, policy_loss=policy_loss, entropy=entropy.mean(-1)
        )

    def _q(
        self, inputs: Tensor, action: Tensor | None = None, weights: Tensor | None = None
    ) -> Tensor:
        """Return Q in float32; matrix products may be bf16."""
        # Without a cache: a replayed graph would read rounded weights from its capture.
        autocast = torch.autocast(
            self.device.type, torch.bfloat16, enabled=self.net.bf16, cache_enabled=False
        )
        with autocast:
            q: Tensor = self.critics(inputs, action, weights=weights)
        return q.float()

    @torch.no_grad()
    def _targets(self, temperature: Tensor) -> Tensor:
        """Soft Bellman targets."""
        replay, online_next, target_weights = self.replay, self.online_next, self.critics.target
        inputs = self.critics.widen(replay.rows(replay.after))
        replay.read(online_next, replay.after)
        online_next.forward()
        reward, discount = replay.batch_paid, replay.batch_discount
        if self.rules.box:
            noise = self._noise[..., self.rules.box :]
            action, log_prob = squashed_sample(head_of(online_next), noise)
            q = self._q(inputs, action, weights=target_weights)
            return critic_target(reward, discount, q, log_prob, temperature)
        log_probs = masked_log_probs(head_of(online_next), replay.masks(replay.after))
        q = self._q(inputs, weights=target_weights)
        return discrete_critic_target(reward, discount, q, log_probs, temperature)

    def _taken(self, inputs: Tensor) -> Tensor:
        action = self.replay.actions()
        return self._q(inputs, action) if self.rules.box else gather_q(self._q(inputs), action)

    def _learn_actor(
        self, inputs: Tensor, temperature: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | float]:
        """Fill the actors' gradient; return loss, entropies and target entropy."""
        replay, learning = self.replay, self.learning
        replay.read(learning, replay.picked)
        learning.forward()
        head = head_of(learning).requires_grad_()
        target_entropy: Tensor | float
        if self.rules.box:
            action, log_prob = squashed_sample(head, self._noise[..., : self.rules.box])
            q = self._q(inputs, action, weights=self.critics.flat.detach())
            loss, entropy = actor_loss(q, log_prob, temperature), -log_prob
            target_entropy = self.config.target_entropy or -float(self.rules.box)
        else:
            mask = replay.masks(replay.picked)
            log_probs = masked_log_probs(head, mask)
            q = self._q(inputs, weights=self.critics.flat.detach())
            loss, entropy = discrete_actor_loss(q, log_probs, temperature)
            target_entropy = entropy_target(mask, self.config)
        (grad,) = torch.autograd.grad(loss.sum(), [head])
        learning.logits_grad[..., : head.shape[-1]].copy_(grad)
        learning.backward()
        return loss, entropy.detach(), target_entropy

    def _initial_state(self, member: int) -> dict[str, dict[str, Tensor]]:
        config, seed = self.experience.settings[member], self.games.seeds[member]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed + 1_000_003 * (self.updates + 1))
            critics = self._critics_of(1)
        first = torch.tensor(math.log(config.temperature or config.initial_temperature))
        return {
            "critics": {"flat": critics.flat.data, "target": critics.target},
            "temperature": {"log": first},
        }

    def kept(self) -> list[Tensor]:
        """All tensors that an optimizer step changes."""
        adams = (self.adam, self.critic_adam, self.temperature_adam)
        moments = [tensor for adam in adams for tensor in adam.kept()]
        weights = [self.net.weight, self.net.compute, self._critics.weight, self._log.weight]
        return [*weights, self.critics.target, *moments]

    def dry_run(self) -> list[Report]:
        return self.experience.dry_run(self.step, self.kept())

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        return self.experience.snapshot(member, self.learner_state(member))

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        self.playing.restore(snapshot, member)
        tensors, flat = snapshot.tensors, self.critics.flat.data
        if "critics" not in tensors:
            tensors = self._initial_state(member)
        if tensors["critics"]["flat"].shape[1:] != flat.shape[1:]:
            raise StateError("the checkpoint holds other critics; set net and sac as they were")
        flat[member] = tensors["critics"]["flat"][0].to(self.device)
        self.critics.target[member] = tensors["critics"]["target"][0].to(self.device)
        self._log.weight[member] = tensors["temperature"]["log"].to(self.device)
        self.adam.load_state(member, self.net, optimizer_state(snapshot))
        for adam, name in (
            (self.critic_adam, "critic_optimizer"),
            (self.temperature_adam, "temperature_optimizer"),
        ):
            kept = tensors.get(name, {})
            adam.steps[member] = int(kept["0.step"]) if kept else 0
            for array, kind in zip((adam.first, adam.second), KINDS, strict=True):
                array[member] = kept[f"0.{kind}"].view(-1).to(self.device) if kept else 0.0
        self.experience.restore(snapshot, member)

    def learner_state(self, member: int) -> dict[str, dict[str, Tensor]]:
        """Copy critics, target critics, temperature, and the state of all optimizers."""
        row = slice(member, member + 1)
        critics = {"flat": self.critics.flat.detach()[row], "target": self.critics.target[row]}
        return {
            "critics": {name: tensor.cpu().clone() for name, tensor in critics.items()},
            "temperature": {"log": self._log.weight[member, 0].cpu().clone()},
            "optimizer": self.adam.state(member, self.net) if self.experience.steps[member] else {},
            "critic_optimizer": self._moments(self.critic_adam, member, critics["flat"].shape),
            "temperature_optimizer": self._moments(self.temperature_adam, member, ()),
        }

    def _moments(self, adam: FlatAdam, member: int, shape: tuple[int, ...]) -> dict[str, Tensor]:
        if not self.experience.steps[member]:
            return {}
        moments = zip(KINDS, (adam.first, adam.second), strict=True)
        found = {f"0.{kind}": of[member].view(shape).cpu().clone() for kind, of in moments}
        return {"0.step": torch.tensor(float(adam.steps[member])), **found}
