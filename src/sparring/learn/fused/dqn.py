"""DQN on a GPU: `learn.dqn` for all members of a population, as graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparring.config import CollectConfig, DQNConfig, NetConfig, ReplayConfig
from sparring.learn.alike import demand_shared
from sparring.learn.dqn import Knobs
from sparring.learn.fused.games import Games
from sparring.learn.fused.off_policy import FusedOffPolicy
from sparring.learn.learner import Snapshot
from sparring.learn.on_policy import optimiser_state
from sparring.learn.q_learning import dqn_loss, spread_epsilon, td_target
from sparring.nets.flat_kinds import make_flat
from sparring.nets.policy import DUELING
from sparring.schedule import Moment


class FusedDQN(FusedOffPolicy):
    """A network whose policy head values actions, and a target that follows it, for each member."""

    knob_names = ("lr", "gamma", "tau", "epsilon", "max_grad_norm")
    loss_names = ("q_loss", "td_error", "grad_norm")

    def __init__(
        self,
        games: Games,
        collect: CollectConfig,
        configs: Sequence[DQNConfig],
        replay: ReplayConfig,
        net: NetConfig,
        **options: Any,
    ) -> None:
        """Take over games whose seeds are those of the members. options: see `FusedOffPolicy`."""
        assert not games.rules.box
        demand_shared("dqn", configs)
        super().__init__(games, collect, configs, replay, net, by_value=True, **options)
        self.config = configs[0]
        self.target = make_flat(
            games.rules,
            net,
            self.members,
            bf16=collect.bf16,
            device=self.device,
            memory=self.pool.memory_bytes,
        )
        self._replace_targets()
        self.beyond = self.target.passing(replay.batch, learn=False)
        """What the target says about what follows."""

    def knobs_of(self, config: DQNConfig, moment: Moment) -> dict[str, float]:
        """Every schedule of a member."""
        knobs = Knobs.at(config, moment)
        return {name: getattr(knobs, name) for name in self.knob_names}

    def epsilon_of(self, member: int, knobs: Mapping[str, float]) -> np.ndarray[Any, Any]:
        """How probable a random action is in every game of a member."""
        return spread_epsilon(
            knobs["epsilon"], self.configs[member].epsilon_spread, self.games.each
        )

    def descend(self) -> None:
        """One optimiser step of all members, and the targets'."""
        replay, learning = self.replay, self.learning
        replay.read(learning, replay.picked)
        learning.forward()
        policy = self.head(learning).requires_grad_()
        value = self.value(learning).requires_grad_()
        loss, error = dqn_loss(
            policy,
            value,
            mask=replay.masks(replay.picked),
            action=replay.actions(),
            target=self._targets(),
            weight=replay.weight if self.replay_config.prioritised else None,
            dueling=self.config.dueling,
            huber=self.config.huber,
        )
        # The loss is a mean over members too; each has its own.
        grads = torch.autograd.grad(
            loss * self.members, [policy, value], allow_unused=True, materialize_grads=True
        )
        learning.logits_grad[..., : policy.shape[-1]].copy_(grads[0])
        learning.value_grad[..., 0].copy_(grads[1])
        learning.backward()
        self.step_with(self.adam, "lr")
        self._follow()
        self.replay.reprioritise(error)
        self._learned(error)

    @torch.no_grad()
    def _targets(self) -> Tensor:
        """What the sampled decisions are to be worth."""
        replay, beyond = self.replay, self.beyond
        replay.read(beyond, replay.after)
        beyond.forward()
        policy = chooser = self.head(beyond)
        if self.config.double:
            replay.read(self.ahead, replay.after)
            self.ahead.forward()
            chooser = self.head(self.ahead)
        return td_target(
            policy,
            self.value(beyond),
            chooser=chooser,
            mask=replay.masks(replay.after),
            paid=replay.batch_paid,
            discount=replay.batch_discount,
            dueling=self.config.dueling,
        )

    @torch.no_grad()
    def _follow(self) -> None:
        """Move the targets towards the networks, or replace them when their time has come."""
        target, every = self.target, self.config.target_every
        share = self.knob("tau") if not every else ((self.replay.number + 1) % every == 0).float()
        target.weight.lerp_(self.net.weight, (share * self.active)[:, None])
        target.compute.copy_(target.weight * target.scale)

    @torch.no_grad()
    def _replace_targets(self) -> None:
        """Set the targets to the networks."""
        self.target.copy_from(self.net)

    def _learned(self, error: Tensor) -> None:
        """Note how wrong the estimates were."""
        huber = self.config.huber or torch.inf
        small = error.clamp(max=huber)
        each = self.replay.weight * (0.5 * small**2 + torch.nan_to_num(huber * (error - small)))
        norm = self.adam.plans[0][:, self.kernels.names("Plan").index("norm")]
        self.note(q_loss=each.mean(1), td_error=error.mean(1), grad_norm=norm)

    def kept(self) -> list[Tensor]:
        """Everything that an optimiser step changes."""
        target = self.target
        return [
            *(self.net.weight, self.net.compute, target.weight, target.compute),
            *self.adam.kept(),
        ]

    @property
    def facts(self) -> dict[str, bool]:
        """What policies are to say about their heads."""
        return {**super().facts, DUELING: self.config.dueling}

    def learned(self, member: int) -> dict[str, dict[str, Tensor]]:
        """The target network and Adam's memory."""
        optimiser = self.adam.state(member, self.net) if self.steps[member] else {}
        return {"target": self.target.state(member), "optimiser": optimiser}

    def put_learned(self, member: int, snapshot: Snapshot) -> None:
        """Go on with `learned` of another moment; where nothing was learned the target is new."""
        self.adam.load_state(member, self.net, optimiser_state(snapshot))
        learned = bool(snapshot.tensors["optimiser"])
        self.target.load(member, snapshot.tensors["target" if learned else "net"])
