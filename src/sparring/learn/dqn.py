"""DQN from replay: double, dueling, n-step, with masks; exploration, target, update.

The policy head holds values of actions (`learn.q_learning`), so that everything that plays a
policy plays this one too, by its best action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from sparring.config import CollectConfig, DQNConfig, NetConfig, ReplayConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.forward import Forward
from sparring.learn.off_policy import OffPolicy, load_optimiser, optimiser_tensors
from sparring.learn.q_learning import dqn_loss, spread_epsilon, td_target
from sparring.learn.replay import Samples
from sparring.nets.make import make_net
from sparring.nets.net import POLICY, VALUE
from sparring.nets.policy import DUELING
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment, Schedule


def demand_discrete(rules: Rules) -> None:
    """Refuse a game whose actions have no numbers."""
    if rules.box:
        hint = ", or play laser_hockey_discrete" if rules.name == "laser_hockey" else ""
        raise ConfigError(
            f"algo dqn values discrete actions, and {rules.name} has continuous ones; "
            f"use --algo sac{hint}"
        )


@dataclass(frozen=True)
class Knobs:
    """The numbers of `DQNConfig` that a schedule may change, as they are in one rollout."""

    lr: float
    gamma: float
    tau: float
    epsilon: float
    max_grad_norm: float

    @classmethod
    def at(cls, config: DQNConfig, moment: Moment) -> Knobs:
        """Read every schedule."""
        schedules: dict[str, Schedule] = {f.name: getattr(config, f.name) for f in fields(cls)}
        return cls(**{name: schedule.at(moment) for name, schedule in schedules.items()})


class DQN(OffPolicy):
    """The learner: a network whose policy head values actions, and a target that follows it."""

    greedy = True
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
        demand_discrete(pool.rules)
        super().__init__(
            pool, collect, replay, net, gamma_into=config.gamma_into, threads=threads, **options
        )
        self.config = config
        self.knobs = Knobs.at(config, Moment(0, 0.0))
        self.parameters = list(self.net.parameters())
        self.optimiser = torch.optim.Adam(self.parameters, lr=self.knobs.lr, fused=True)
        with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and overwritten
            target = make_net(pool.rules, net, memory=pool.memory_bytes, threads=threads)
        self.target = target.to(self.device).requires_grad_(False)
        self.target_parameters = list(self.target.parameters())
        self.ahead = Forward(self.target, self.device, collect)
        self.target.load_state_dict(self.net.state_dict())

    def turn_knobs(self, moment: Moment) -> dict[str, float]:
        """Read every schedule."""
        self.knobs = knobs = Knobs.at(self.config, moment)
        for group in self.optimiser.param_groups:
            group["lr"] = knobs.lr
        return {"lr": knobs.lr, "gamma": knobs.gamma, "epsilon": knobs.epsilon}

    def _explore(self, knobs: Mapping[str, float]) -> None:
        """Give every game an epsilon of its own, unless all of it is random."""
        super()._explore(knobs)
        if self.config.epsilon_spread and (self.exploring.epsilon < 1).any():
            games, spread = self.pool.num_games, self.config.epsilon_spread
            self.exploring.set_epsilon(spread_epsilon(knobs["epsilon"], spread, games))

    def descend(self, samples: Samples) -> tuple[dict[str, Tensor], Tensor]:
        """One optimiser step, and the target's. A loss that is not finite is never stepped on."""
        config = self.config
        heads = self.forward(samples.obs)
        loss, error = dqn_loss(
            heads[POLICY],
            heads[VALUE],
            mask=self._here(samples.mask),
            action=self._here(samples.action),
            target=self.targets(samples),
            weight=self._here(samples.weight) if self.replay_config.prioritised else None,
            dueling=config.dueling,
            huber=config.huber,
        )
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.parameters, self.knobs.max_grad_norm)
        losses = {"q_loss": loss.detach(), "td_error": error.mean(), "grad_norm": norm}
        if not torch.isfinite(norm + losses["q_loss"]):
            raise self.diverged(losses)
        self.optimiser.step()
        self.follow()
        return losses, error

    @torch.no_grad()
    def targets(self, samples: Samples) -> Tensor:
        """What the sampled decisions are to be worth."""
        ahead = self.ahead(samples.next_obs)
        double = self.config.double
        return td_target(
            ahead[POLICY],
            ahead[VALUE],
            chooser=self.forward(samples.next_obs)[POLICY] if double else ahead[POLICY],
            mask=self._here(samples.next_mask),
            paid=self._here(samples.paid),
            discount=self._here(samples.discount),
            dueling=self.config.dueling,
        )

    @torch.no_grad()
    def follow(self) -> None:
        """Move the target network towards the network, or replace it when its time has come."""
        every = self.config.target_every
        if every == 0:
            torch._foreach_lerp_(self.target_parameters, self.parameters, self.knobs.tau)
        elif (self.steps + 1) % every == 0:
            torch._foreach_copy_(self.target_parameters, self.parameters)

    def _here(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=True)

    @property
    def facts(self) -> dict[str, bool]:
        """What policies are to say about their heads."""
        return {**super().facts, DUELING: self.config.dueling}

    def learned(self) -> dict[str, dict[str, Tensor]]:
        """The target network and Adam's memory."""
        target = {name: kept.cpu().clone() for name, kept in self.target.state_dict().items()}
        return {"target": target, "optimiser": optimiser_tensors(self.optimiser)}

    def put_learned(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go on with `learned` of another moment; where nothing was learned the target is new."""
        load_optimiser(self.optimiser, tensors["optimiser"])
        learned = bool(tensors["optimiser"])
        self.target.load_state_dict(tensors["target"] if learned else self.net.state_dict())
