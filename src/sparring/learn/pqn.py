"""PQN: Q-learning from fresh rollouts, without replay and without a target network.

Targets are lambda-returns: what was paid, then the best value of what followed mixed with what
came after it (Peng's Q(lambda)). Layer norm (net.norm) keeps values calm without a target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, DQNConfig, NetConfig
from sparring.learn.collect import Actor, Answer, Draws
from sparring.learn.forward import Forward
from sparring.learn.knobs import AtMoment
from sparring.learn.on_policy import Arrays, OnPolicy
from sparring.learn.q_learning import dqn_loss, q_values, spread_epsilon
from sparring.nets.distribution import Sampler
from sparring.nets.net import POLICY, VALUE, Heads
from sparring.nets.policy import DUELING
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment


@dataclass(frozen=True)
class Knobs(AtMoment):
    """The numbers of `DQNConfig` that a schedule may change, as they are in one update."""

    lr: float
    gamma: float
    q_lambda: float
    epsilon: float
    max_grad_norm: float


class Valuing:
    """Answers the learner's rows and keeps what the best action is worth."""

    def __init__(self, forward: Forward, seed: int, *, rows: int, dueling: bool) -> None:
        """rows: of every game."""
        self.forward, self.sampler = forward, Sampler(seed)
        self.rows, self.dueling = rows, dueling
        self.epsilon = np.ones(1, np.float32)
        """By game."""

    @torch.no_grad()
    def best(self, obs: Tensor, mask: Tensor) -> tuple[Heads, npt.NDArray[np.float32]]:
        """Return the heads, and what the best legal action is worth."""
        heads = self.forward(obs)
        legal = mask.to(heads[POLICY].device)
        q = q_values(heads[POLICY], heads[VALUE], legal, dueling=self.dueling)
        return heads, q.amax(-1).cpu().numpy()

    def answer(
        self, obs: npt.NDArray[np.uint8], mask: npt.NDArray[np.uint8], draws: Draws
    ) -> Answer:
        """Choose an action for every row."""
        heads, value = self.best(torch.from_numpy(obs), torch.from_numpy(mask))
        action, _ = self.sampler.draw(
            heads[POLICY],
            mask,
            rollout=draws.rollout,
            step=draws.step,
            rows=draws.rows,
            greedy=True,
            epsilon=self.epsilon[draws.rows // self.rows],
        )
        return Answer(action, {"value": value}, self.forward.memory(obs, heads))


class PQN(OnPolicy[Knobs]):
    """The learner: exploration, lambda-returns, and the loss."""

    by_value = True
    columns = ("value",)
    eps = 1e-8

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: DQNConfig,
        net: NetConfig,
        **options: Any,
    ) -> None:
        """Take over a pool. options: those of `OnPolicy`."""
        assert not pool.rules.box
        self.config = config
        super().__init__(pool, collect, config, net, **options)

    def make_actor(self) -> Actor:
        """Takes the best actions, and random ones now and then."""
        rows, dueling = self.pool.rules.rows, self.config.dueling
        self.valuing = Valuing(self.forward, self.seed, rows=rows, dueling=dueling)
        return self.valuing

    def knobs_at(self, moment: Moment) -> Knobs:
        """Read every schedule, and explore by them."""
        knobs = Knobs.at(self.config, moment)
        spread, games = self.config.epsilon_spread, self.pool.num_games
        self.valuing.epsilon = spread_epsilon(knobs.epsilon, spread, games)
        return knobs

    def targets(self, knobs: Knobs) -> tuple[npt.NDArray[np.intp], Arrays]:
        """Lambda-returns of every decision that is complete."""
        rollout, transitions = self.collector.rollout, self.collector.transitions
        if rollout.cuts.obs:
            obs, mask = np.concatenate(rollout.cuts.obs), np.concatenate(rollout.cuts.mask)
            _, after = self.valuing.best(torch.from_numpy(obs), torch.from_numpy(mask))
            rollout.cuts.settle(rollout, after)
        samples = self.collector.link(knobs.gamma, self.config.gamma_into)
        value = rollout.columns["value"]
        beyond = transitions.advantages(value, knobs.q_lambda)[samples]
        return samples, {"returns": beyond + value[samples]}

    def tensors(self, samples: npt.NDArray[np.intp], targets: Arrays) -> Arrays:
        """Rows and targets."""
        rows = self.collector.rollout
        arrays = {"obs": rows.obs, "mask": rows.mask, "action": rows.action}
        return {**{name: array[samples] for name, array in arrays.items()}, **targets}

    def loss(
        self, minibatch: Mapping[str, Tensor], knobs: Knobs
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """How far the values of the actions that were taken are from their returns."""
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

    def stats(
        self, samples: npt.NDArray[np.intp], targets: Arrays, knobs: Knobs
    ) -> dict[str, float]:
        """What the settings are, and what is thought of the best actions."""
        value = self.collector.rollout.columns["value"][samples]
        return {
            "losses/q": float(value.mean()),
            "learning/gamma": knobs.gamma,
            "learning/epsilon": knobs.epsilon,
        }

    @property
    def facts(self) -> dict[str, bool]:
        """What policies are to say about their heads."""
        return {**super().facts, DUELING: self.config.dueling}
