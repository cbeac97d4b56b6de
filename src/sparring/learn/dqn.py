"""DQN from replay: double, dueling, n-step, with masks; exploration, target, update.

The policy head holds values of actions (`learn.q_learning`), so that everything that plays a
policy plays this one too, by its best action.
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
from sparring.learn.forward import Forward
from sparring.learn.knobs import AtMoment
from sparring.learn.native_dqn import NativeGradient
from sparring.learn.normalising import share_normaliser
from sparring.learn.off_policy import Losses, OffPolicy
from sparring.learn.q_learning import (
    Learned,
    dqn_gradient,
    spread_epsilon,
    td_target,
)
from sparring.learn.replay import Samples
from sparring.nets.make import make_net
from sparring.nets.native_net import NativeNet
from sparring.nets.net import POLICY, VALUE, Heads
from sparring.nets.packed import LeanPasses, Packed, PackedAdam, Passes, is_lean, passes_of
from sparring.nets.policy import DUELING
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment


@dataclass(frozen=True)
class Knobs(AtMoment):
    """The numbers of `DQNConfig` that a schedule may change, as they are in one rollout."""

    lr: float
    gamma: float
    tau: float
    epsilon: float
    max_grad_norm: float


class DQN(OffPolicy):
    """The learner: a network whose policy head values actions, and a target that follows it."""

    by_value = True

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: DQNConfig,
        replay: ReplayConfig,
        net: NetConfig,
        *,
        threads: int = 1,
        **options: Any,
    ) -> None:
        """Take over a pool. options: those of `OffPolicy`."""
        assert not pool.rules.box
        super().__init__(
            pool, collect, replay, net, gamma_into=config.gamma_into, threads=threads, **options
        )
        self.config = config
        self.knobs = Knobs.at(config, Moment(0, 0.0))
        with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and overwritten
            self.target = make_net(pool.rules, net, memory=pool.memory_bytes, threads=threads)
        self.target.to(self.device).load_state_dict(self.net.state_dict())
        share_normaliser(self.net, self.target)
        self.target.requires_grad_(False)
        self.passes: Passes
        self.ahead: Passes
        self.native: NativeGradient | None = None
        native = self.forward.go_native(threads)
        if native is None:
            self._lay_out(Forward(self.target, self.device, collect))
        else:
            self._lay_out_natively(native)

    def _lay_out(self, ahead: Forward) -> None:
        """Make both networks one array each, so that Adam is one call. ahead: runs the target."""
        self.packed, self.packed_target = Packed(self.net), Packed(self.target)
        self.passes = passes_of(self.packed, self.forward)
        self.ahead = passes_of(self.packed_target, ahead)
        if is_lean(self.packed):
            self.forward.lean = LeanPasses(self.packed).forward
        self.optimiser = PackedAdam(self.packed)

    def _lay_out_natively(self, net: NativeNet) -> None:
        """The same where both are computed natively."""
        target = NativeNet(self.target, threads=net.threads, arithmetic=self.forward.arithmetic)
        self.native = NativeGradient(net, target, weighted=self.replay_config.prioritised)
        self.packed, self.packed_target = net.packed, target.packed
        self.passes, self.ahead = net.passes(), target.passes()
        work = _native.Updating(net.threads)
        self.optimiser = PackedAdam(self.packed, native=work, tell=net.changed)

    def turn_knobs(self, moment: Moment) -> dict[str, float]:
        """Read every schedule."""
        self.knobs = knobs = Knobs.at(self.config, moment)
        self.optimiser.lr = knobs.lr
        return {"lr": knobs.lr, "gamma": knobs.gamma, "epsilon": knobs.epsilon}

    def _explore(self, knobs: Mapping[str, float]) -> None:
        """Give every game an epsilon of its own, unless all of it is random."""
        super()._explore(knobs)
        if self.config.epsilon_spread and (self.exploring.epsilon < 1).any():
            games, spread = self.pool.num_games, self.config.epsilon_spread
            self.exploring.set_epsilon(spread_epsilon(knobs["epsilon"], spread, games))

    def descend(self, samples: Samples) -> tuple[Losses, Tensor]:
        """One optimiser step, and the target's. A loss that is not finite is never stepped on."""
        native = self.native
        learned = native.learn(samples, self.config) if native else self.gradient(samples)
        norm = math.nan
        if math.isfinite(learned.loss):
            norm = self.optimiser.descend(self.knobs.max_grad_norm)
        losses = {"q_loss": learned.loss, "td_error": learned.off, "grad_norm": norm}
        if not math.isfinite(norm):
            raise self.diverged(losses)
        self.follow()
        return losses, learned.error

    def gradient(self, samples: Samples) -> Learned:
        """Fill the gradient: the readable way, which `NativeGradient` is held equal to."""
        config, here = self.config, self._here
        heads, target = self.look(samples)
        found = dqn_gradient(
            heads[POLICY],
            heads[VALUE],
            mask=here(samples.mask),
            action=here(samples.action),
            target=target,
            weight=here(samples.weight) if self.replay_config.prioritised else None,
            dueling=config.dueling,
            huber=config.huber,
        )
        self.passes.backward(found.policy, found.value)
        return Learned(found.loss, found.error.mean(), found.error)

    @torch.no_grad()
    def look(self, samples: Samples) -> tuple[Heads, Tensor]:
        """What the network says about sampled decisions, and what they are to be worth."""
        here = self._here
        (ahead,) = self.ahead.forward(samples.next_obs)
        if self.config.double:
            heads, chooser = self.passes.forward(samples.obs, samples.next_obs)
        else:
            (heads,), chooser = self.passes.forward(samples.obs), ahead
        target = td_target(
            ahead[POLICY],
            ahead[VALUE],
            chooser=chooser[POLICY],
            mask=here(samples.next_mask),
            paid=here(samples.paid),
            discount=here(samples.discount),
            dueling=self.config.dueling,
        )
        return heads, target

    def _here(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=True)

    @torch.no_grad()
    def follow(self) -> None:
        """Move the target network towards the network, or replace it when its time has come."""
        every, share = self.config.target_every, self.knobs.tau
        if every:
            share = float((self.steps + 1) % every == 0)
        if self.native:
            self.native.follow(share)
        elif share:
            self.packed_target.weight.lerp_(self.packed.weight, share)

    @property
    def facts(self) -> dict[str, bool]:
        """What policies are to say about their heads."""
        return {**super().facts, DUELING: self.config.dueling}

    def learned(self) -> dict[str, dict[str, Tensor]]:
        """The target network and Adam's memory."""
        target = {name: kept.cpu().clone() for name, kept in self.target.state_dict().items()}
        return {"target": target, "optimiser": self.optimiser.tensors()}

    def put_learned(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go on with `learned` of another moment; where nothing was learned the target is new."""
        self.optimiser.load(tensors["optimiser"])
        learned = bool(tensors["optimiser"])
        self.target.load_state_dict(tensors["target"] if learned else self.net.state_dict())
