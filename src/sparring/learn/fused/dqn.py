"""DQN on a GPU: the kernel launches of `learn.dqn`, for all members of a population at once.

tests/cuda/test_fused_replay.py compares the two step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from sparring.config import CollectConfig, DQNConfig, NetConfig, ReplayConfig
from sparring.learn.averaging import trained_weights
from sparring.learn.backends.torch import optimizer_state
from sparring.learn.dqn import DQNHparams
from sparring.learn.fused.experience import FusedExperience, head_of, value_of
from sparring.learn.fused.games import Games
from sparring.learn.fused.kernels import REPLAY_SOURCE
from sparring.learn.fused.playing import FusedSelfPlay
from sparring.learn.learner import Report, Snapshot
from sparring.learn.losses import dqn_loss, spread_epsilon, td_target
from sparring.learn.plan import check_shared
from sparring.nets.policy import BY_VALUE, DUELING
from sparring.nets.run.make_flat import make_flat
from sparring.schedule import Moment

HPARAMS = tuple(field.name for field in fields(DQNHparams))
LOSSES = ("q_loss", "td_error", "grad_norm")


class FusedDQN:
    """The learner: a Q-network, a target network and a replay buffer for each member."""

    def __init__(
        self,
        games: Games,
        collect: CollectConfig,
        configs: Sequence[DQNConfig],
        replay: ReplayConfig,
        net: NetConfig,
        **options: Any,
    ) -> None:
        """Play and learn from games; their seeds are those of the members.

        configs: one per member. options: by_role, slots and graphs of `FusedSelfPlay`.
        """
        assert not games.rules.box
        check_shared("dqn", configs)
        self.config = configs[0]
        policy_meta = {BY_VALUE: True, DUELING: self.config.dueling}
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
        self.adam = self.experience.adam_for(self.net)
        self.target = make_flat(
            games.rules,
            net,
            playing.members,
            bf16=collect.bf16,
            device=playing.device,
            memory=self.pool.memory_bytes,
        )
        self.target.copy_from(self.net)
        self.learning = self.net.make_pass(replay.batch, learn=True)
        """Online network at the observations of a batch."""
        self.online_next = self.net.make_pass(replay.batch, learn=False)
        """Online network at the next observations."""
        self.target_next = self.target.make_pass(replay.batch, learn=False)
        """Target network at the next observations."""

    @property
    def updates(self) -> int:
        return self.playing.updates

    def iterate(self, progress: float) -> list[Report]:
        """Collect and learn; return one report per member."""
        return self.experience.update(progress, self.set_hparams, self.step)

    def set_hparams(self, moments: Sequence[Moment]) -> list[dict[str, float]]:
        """Copy scheduled values to the device; return their metrics by member."""
        settings = self.experience.settings
        found = [
            DQNHparams.at(config, moment) for config, moment in zip(settings, moments, strict=True)
        ]
        hparams = [{name: getattr(mine, name) for name in HPARAMS} for mine in found]
        epsilon = [
            spread_epsilon(mine.epsilon, config.epsilon_spread, self.games.each)
            for config, mine in zip(settings, found, strict=True)
        ]
        return self.experience.set_hparams(moments, hparams, epsilon)

    def step(self) -> None:
        """Make an optimizer step of all members, and update the target networks."""
        replay, learning = self.replay, self.learning
        replay.read(learning, replay.picked)
        learning.forward()
        policy = head_of(learning).requires_grad_()
        value = value_of(learning).requires_grad_()
        loss, error = dqn_loss(
            policy,
            value,
            mask=replay.masks(replay.picked),
            action=replay.actions(),
            target=self._targets(),
            weight=replay.weight if replay.config.prioritized else None,
            dueling=self.config.dueling,
            huber=self.config.huber,
        )
        # The loss is a mean over members too; scale it back to a loss per member.
        grads = torch.autograd.grad(
            loss * self.playing.members, [policy, value], allow_unused=True, materialize_grads=True
        )
        learning.logits_grad[..., : policy.shape[-1]].copy_(grads[0])
        learning.value_grad[..., 0].copy_(grads[1])
        learning.backward()
        self.experience.step_with(self.adam, "lr")
        self._update_target()
        self.replay.reprioritize(error)
        self._add_losses(error)

    @torch.no_grad()
    def _targets(self) -> Tensor:
        replay, target_next = self.replay, self.target_next
        replay.read(target_next, replay.after)
        target_next.forward()
        policy = online_head = head_of(target_next)
        if self.config.double:
            replay.read(self.online_next, replay.after)
            self.online_next.forward()
            online_head = head_of(self.online_next)
        return td_target(
            policy,
            value_of(target_next),
            selection_head=online_head,
            mask=replay.masks(replay.after),
            reward=replay.batch_paid,
            discount=replay.batch_discount,
            dueling=self.config.dueling,
        )

    @torch.no_grad()
    def _update_target(self) -> None:
        """Soft update by tau, or a copy every `target_every` optimizer steps."""
        target, every = self.target, self.config.target_every
        share = self.experience.hparam("tau")
        if every:
            share = ((self.replay.number + 1) % every == 0).float()
        target.weight.lerp_(self.net.weight, (share * self.experience.active)[:, None])
        target.compute.copy_(target.weight * target.scale)

    def _add_losses(self, error: Tensor) -> None:
        huber = self.config.huber or torch.inf
        small = error.clamp(max=huber)
        each = self.replay.weight * (0.5 * small**2 + torch.nan_to_num(huber * (error - small)))
        norm = self.adam.plans[0][:, self.playing.kernels.names("StepParams").index("norm")]
        self.experience.add_losses(q_loss=each.mean(1), td_error=error.mean(1), grad_norm=norm)

    def kept(self) -> list[Tensor]:
        """All tensors that an optimizer step changes."""
        target = self.target
        return [
            *(self.net.weight, self.net.compute, target.weight, target.compute),
            *self.adam.kept(),
        ]

    def dry_run(self) -> list[Report]:
        return self.experience.dry_run(self.step, self.kept())

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        return self.experience.snapshot(member, self.learner_state(member))

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        self.playing.restore(snapshot, member)
        self.adam.load_state(member, self.net, optimizer_state(snapshot))
        tensors = snapshot.tensors
        has_steps = bool(tensors["optimizer"])
        self.target.load(member, tensors["target"] if has_steps else trained_weights(tensors))
        self.experience.restore(snapshot, member)

    def learner_state(self, member: int) -> dict[str, dict[str, Tensor]]:
        """Copy the target network and Adam's state."""
        optimizer = self.adam.state(member, self.net) if self.experience.steps[member] else {}
        return {"target": self.target.state(member), "optimizer": optimizer}
