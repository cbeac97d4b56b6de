"""Soft actor-critic: sample, targets, losses and update, in the order in which they run.

Continuous actions are drawn from a Gaussian and squashed by tanh; of discrete ones expectations
are taken over the legal ones. All losses are functions of tensors that never wait for a device;
tensors may have members of a population in front.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparring.config import CollectConfig, NetConfig, ReplayConfig, SACConfig
from sparring.errors import ConfigError, StateError
from sparring.games.rules import Rules
from sparring.learn.off_policy import OffPolicy, load_optimiser, optimiser_tensors
from sparring.learn.replay import Samples
from sparring.nets.critics import Critics
from sparring.nets.distribution import (
    LOG_SQRT_TAU,
    entropy_of,
    masked_log_probs,
    mean_and_spread,
)
from sparring.nets.net import POLICY
from sparring.nets.policy import VALUES
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

NOISE = 0x5AC
"""Which stream of random numbers is SAC's, among those of the same seed and step."""
LOG_2 = math.log(2)

# What follows from heads and critics: [..., batch], critics [..., 2, batch] or, of discrete
# actions, [..., 2, batch, actions]. A temperature has shape [] or [members, 1].


def squashed_sample(head: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Draw actions within -1..1 from a Gaussian's head; return them and their log-densities.

    The density is that behind tanh: log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u)), which
    stays exact where the left side has long become log(0).
    """
    mean, log_spread = mean_and_spread(head)
    drawn = torch.addcmul(mean, log_spread.exp(), noise)
    squashing = 2 * (LOG_2 - drawn - torch.nn.functional.softplus(-2 * drawn))
    log_prob = -0.5 * noise * noise - LOG_SQRT_TAU - log_spread - squashing
    return torch.tanh(drawn), log_prob.sum(-1)


def critic_target(
    paid: Tensor, discount: Tensor, next_q: Tensor, next_log_prob: Tensor, temperature: Tensor
) -> Tensor:
    """What critics should have said: paid, and the more cautious critic's view of what follows.

    A negative discount means that the value is that of the other seat, whose gain is a loss: there
    the larger estimate is the cautious one.
    """
    cautious = (discount.unsqueeze(-2) * next_q).amin(-2)
    return _with_entropy(paid, discount, cautious, -next_log_prob, temperature)


def _with_entropy(
    paid: Tensor, discount: Tensor, following: Tensor, entropy: Tensor, temperature: Tensor
) -> Tensor:
    """Add what is paid, what follows, and the worth of the next decision's entropy.

    Not where that decision is the other seat's: what it may still choose is worth nothing here.
    """
    following = torch.addcmul(following, discount.clamp(min=0), temperature * entropy)
    # Behind the end there is no row, and whatever stands in its place is not to be read.
    return paid + following.masked_fill(discount == 0, 0.0)


def critic_loss(q: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Half the squared errors of both critics, and every sample's mean error."""
    error = q - target.unsqueeze(-2)
    each = (error * error).sum(-2)
    return 0.5 * (weight * each).mean(-1), error.detach().abs().mean(-2)


def actor_loss(q: Tensor, log_prob: Tensor, temperature: Tensor) -> Tensor:
    """Choose what the more cautious critic likes, and stay undecided."""
    return (temperature * log_prob - q.amin(-2)).mean(-1)


def temperature_loss(log_temperature: Tensor, entropy: Tensor, target: Tensor | float) -> Tensor:
    """Entropy below its target raises the temperature. No other loss learns from this one."""
    return log_temperature * (entropy - target).detach().mean(-1)


# Discrete actions


def discrete_critic_target(
    paid: Tensor, discount: Tensor, next_q: Tensor, next_log_probs: Tensor, temperature: Tensor
) -> Tensor:
    """`critic_target`, as an expectation over the legal actions."""
    cautious = (discount.unsqueeze(-1).unsqueeze(-3) * next_q).amin(-3)
    following = (next_log_probs.exp() * cautious).sum(-1)
    return _with_entropy(paid, discount, following, entropy_of(next_log_probs), temperature)


def discrete_actor_loss(q: Tensor, log_probs: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """`actor_loss`, as an expectation over the legal actions; and the entropy of every row."""
    entropy = entropy_of(log_probs)
    value = (log_probs.exp() * q.amin(-3)).sum(-1)
    return -(temperature * entropy + value).mean(-1), entropy


def chosen(q: Tensor, action: Tensor) -> Tensor:
    """What critics say of the actions that were taken, [..., 2, batch]."""
    at = action.long().unsqueeze(-2).unsqueeze(-1).expand(*q.shape[:-1], 1)
    return q.gather(-1, at).squeeze(-1)


def entropy_target(mask: Tensor, config: SACConfig) -> Tensor:
    """What the entropy of every row aims at: a share of the most that its legal actions allow.

    With one legal action that is 0, as is the entropy: such rows do not move the temperature.
    """
    most = (mask != 0).sum(-1).clamp(min=1).log()
    if config.target_entropy:
        return most.clamp(max=config.target_entropy)
    return config.target_share * most


class SAC(OffPolicy):
    """The learner: the usual network is the actor, beside it critics and a temperature."""

    by_value = False

    def __init__(
        self,
        pool: GamePool,
        collect: CollectConfig,
        config: SACConfig,
        replay: ReplayConfig,
        net: NetConfig,
        **options: Any,
    ) -> None:
        """Take over a pool. options: those of `OffPolicy`."""
        check_actor(pool.rules, net)
        super().__init__(pool, collect, replay, net, gamma_into=config.gamma_into, **options)
        self.config = config
        self.critics = Critics(
            self.net.inputs,
            config.critic_hidden or net.hidden,
            activation=net.activation,
            norm=config.critic_norm,
        ).to(self.device)
        first = math.log(config.temperature or config.first_temperature)
        self.log_temperature = torch.tensor(first, device=self.device, requires_grad=True)
        self.actor_weights = [p for p in self.net.parameters() if p.requires_grad]
        self.actor_optimiser = adam(self.actor_weights)
        self.critic_optimiser = adam([self.critics.flat])
        self.temperature_optimiser = adam([self.log_temperature])
        self.tau = self.max_grad_norm = 0.0

    def turn_knobs(self, moment: Moment) -> dict[str, float]:
        """Read every schedule, set learning rates; return what curves show of them."""
        config = self.config
        rates = {
            "lr": (config.lr, self.actor_optimiser),
            "critic_lr": (config.critic_lr, self.critic_optimiser),
            "temperature_lr": (config.temperature_lr, self.temperature_optimiser),
        }
        for schedule, optimiser in rates.values():
            optimiser.param_groups[0]["lr"] = schedule.at(moment)
        self.tau, self.max_grad_norm = config.tau.at(moment), config.max_grad_norm.at(moment)
        return {
            "lr": config.lr.at(moment),
            "critic_lr": config.critic_lr.at(moment),
            "gamma": config.gamma.at(moment),
            "temperature": math.exp(float(self.log_temperature.detach())),
        }

    def descend(self, samples: Samples) -> tuple[dict[str, Tensor], Tensor]:
        """One step of the critics, the actor, the temperature and the targets.

        All of them see the temperature as it was before.
        """
        samples = on_device(samples, self.device)
        temperature = self.log_temperature.detach().exp()
        noise, next_noise = self._noise()
        numbers = self.critics.widen(samples.obs)
        target = self._target(samples, temperature, next_noise)
        loss, error = critic_loss(self._taken(samples, numbers), target, samples.weight)
        self._step(self.critic_optimiser, loss, "critic_loss")
        policy_loss, entropy, aim = self._judge(samples, numbers, temperature, noise)
        self._step(self.actor_optimiser, policy_loss, "policy_loss")
        if not self.config.temperature:
            heat = temperature_loss(self.log_temperature, entropy, aim)
            self._step(self.temperature_optimiser, heat, "temperature_loss")
        self.critics.follow(self.tau)
        losses = {"critic_loss": loss, "policy_loss": policy_loss, "entropy": entropy.mean()}
        return {name: value.detach() for name, value in losses.items()}, error

    @torch.no_grad()
    def _target(self, samples: Samples, temperature: Tensor, noise: Tensor) -> Tensor:
        """What the critics should say of the actions that were taken."""
        head = self.forward(samples.next_obs)[POLICY]
        numbers, aims = self.critics.widen(samples.next_obs), self.critics.target
        paid, discount = samples.paid, samples.discount
        if self.net.box:
            action, log_prob = squashed_sample(head, noise)
            q = self.critics(numbers, action, weights=aims)
            return critic_target(paid, discount, q, log_prob, temperature)
        log_probs = masked_log_probs(head, samples.next_mask)
        q = self.critics(numbers, weights=aims)
        return discrete_critic_target(paid, discount, q, log_probs, temperature)

    def _taken(self, samples: Samples, numbers: Tensor) -> Tensor:
        """What the critics do say of them."""
        if self.net.box:
            q: Tensor = self.critics(numbers, samples.action)
            return q
        return chosen(self.critics(numbers), samples.action)

    def _judge(
        self, samples: Samples, numbers: Tensor, temperature: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | float]:
        """The actor's loss, the entropy of every row, and what that aims at.

        The critics' own weights learn nothing from it, and no time is spent on their gradients.
        """
        head = self.forward(samples.obs)[POLICY]
        if self.net.box:
            action, log_prob = squashed_sample(head, noise)
            q = self.critics(numbers, action, weights=self.critics.flat.detach())
            aim = self.config.target_entropy or -float(self.net.box)
            return actor_loss(q, log_prob, temperature), -log_prob.detach(), aim
        with torch.no_grad():
            q = self.critics(numbers)
        log_probs = masked_log_probs(head, samples.mask)
        loss, entropy = discrete_actor_loss(q, log_probs, temperature)
        return loss, entropy.detach(), entropy_target(samples.mask, self.config)

    def _noise(self) -> Tensor:
        """Standard normal numbers for both draws of a step, [2, batch, box]: by seed and step."""
        key = np.array([self.seed % 2**64, self.steps], np.uint64)
        counter = np.array([0, 0, 0, NOISE], np.uint64)
        draw = np.random.Generator(np.random.Philox(key=key, counter=counter))
        shape = 2, self.replay_config.batch, self.net.box
        return torch.from_numpy(draw.standard_normal(shape, np.float32)).to(self.device)

    def _step(self, optimiser: torch.optim.Optimizer, loss: Tensor, name: str) -> None:
        """Follow the gradient of a loss, if both are finite."""
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        weights = [p for p in optimiser.param_groups[0]["params"] if p.grad is not None]
        norm = torch.nn.utils.get_total_norm([p.grad for p in weights])
        if not torch.isfinite(norm + loss.detach()):
            raise self.diverged({name: loss.detach(), "its gradient's norm": norm})
        if self.max_grad_norm:
            torch.nn.utils.clip_grads_with_norm_(weights, self.max_grad_norm, norm)
        optimiser.step()

    @property
    def facts(self) -> dict[str, bool]:
        """What policies are to say about their heads: critics hold the values, apart."""
        return {**super().facts, VALUES: False}

    def learned(self) -> dict[str, dict[str, Tensor]]:
        """Critics, their targets, the temperature, and what every optimiser remembers."""
        critics = self.critics.state_dict()
        return {
            "critics": {name: value.detach().cpu().clone() for name, value in critics.items()},
            "temperature": {"log": self.log_temperature.detach().cpu().clone()},
            "optimiser": optimiser_tensors(self.actor_optimiser),
            "critic_optimiser": optimiser_tensors(self.critic_optimiser),
            "temperature_optimiser": optimiser_tensors(self.temperature_optimiser),
        }

    def put_learned(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go on with `learned` of another moment."""
        try:
            self.critics.load_state_dict(dict(tensors["critics"]))
        except RuntimeError as wrong:
            first = str(wrong).splitlines()[-1].strip()
            raise StateError(f"the checkpoint holds other critics: {first}") from None
        with torch.no_grad():
            self.log_temperature.copy_(tensors["temperature"]["log"])
        load_optimiser(self.actor_optimiser, tensors["optimiser"])
        load_optimiser(self.critic_optimiser, tensors["critic_optimiser"])
        load_optimiser(self.temperature_optimiser, tensors["temperature_optimiser"])


def check_actor(rules: Rules, net: NetConfig) -> None:
    """Refuse networks whose actions SAC cannot learn."""
    if not rules.box:
        return
    if not net.squash:
        raise ConfigError(
            "net.squash is off; SAC draws continuous actions through tanh: set net.squash"
        )
    if net.spread != "predicted":
        raise ConfigError(
            f"net.spread is {net.spread!r}; SAC learns how certain to be in every situation: "
            "set net.spread to 'predicted'"
        )


def adam(weights: list[Any]) -> torch.optim.Adam:
    """The optimiser of all that learns here; its learning rate is set before every rollout."""
    return torch.optim.Adam(weights, lr=0.0, eps=1e-8, fused=True)


def on_device(samples: Samples, device: torch.device) -> Samples:
    """The batch where the network is."""
    if samples.obs.device.type == device.type:
        return samples
    kept = {f.name: getattr(samples, f.name) for f in fields(samples)}
    moved = {n: t.to(device, non_blocking=True) for n, t in kept.items() if n != "places"}
    return replace(samples, **moved)
