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
from sparring.learn.off_policy import OffPolicy
from sparring.learn.replay import Samples
from sparring.nets.critic_passes import critic_passes
from sparring.nets.critics import Critics
from sparring.nets.distribution import (
    LOG_SQRT_TAU,
    entropy_of,
    masked_log_probs,
    mean_and_spread,
)
from sparring.nets.net import POLICY
from sparring.nets.packed import LeanPasses, Packed, PackedAdam, is_lean, passes_of
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
        first = config.temperature or config.first_temperature
        self.temperature = Temperature(first).to(self.device)
        # Everything that learns is one array each, so that Adam is one call each.
        actor, critics = Packed(self.net), Packed(self.critics)
        self.passes, self.judges = passes_of(actor, self.forward), critic_passes(self.critics)
        if is_lean(actor):
            self.forward.lean = LeanPasses(actor).forward
        self.actor_adam, self.critic_adam = PackedAdam(actor), PackedAdam(critics)
        self.temperature_adam = PackedAdam(Packed(self.temperature))
        self.tau = self.max_grad_norm = 0.0

    def turn_knobs(self, moment: Moment) -> dict[str, float]:
        """Read every schedule, set learning rates; return what curves show of them."""
        config = self.config
        self.actor_adam.lr = config.lr.at(moment)
        self.critic_adam.lr = config.critic_lr.at(moment)
        self.temperature_adam.lr = config.temperature_lr.at(moment)
        self.tau, self.max_grad_norm = config.tau.at(moment), config.max_grad_norm.at(moment)
        return {
            "lr": self.actor_adam.lr,
            "critic_lr": self.critic_adam.lr,
            "gamma": config.gamma.at(moment),
            "temperature": math.exp(float(self.temperature.log.detach())),
        }

    def descend(self, samples: Samples) -> tuple[dict[str, Tensor], Tensor]:
        """One step of the critics, the actor, the temperature and the targets.

        All of them see the temperature as it was before.
        """
        samples = on_device(samples, self.device)
        temperature = self.temperature.log.detach().exp()
        here, ahead = self.passes.forward(samples.obs, samples.next_obs)
        numbers = self.critics.widen(samples.obs)
        noise, next_noise = self._noise()
        target = self._target(samples, ahead[POLICY], temperature, next_noise)
        loss, error = self._value(samples, numbers, target)
        self._step(self.critic_adam, loss, "critic_loss")
        policy_loss, entropy, aim = self._judge(samples, numbers, here[POLICY], temperature, noise)
        self._step(self.actor_adam, policy_loss, "policy_loss")
        if not self.config.temperature:
            off = (entropy - aim).mean()
            self.temperature_adam.packed.grad.copy_(off)
            self._step(self.temperature_adam, off, "entropy beyond its target")
        self.critics.follow(self.tau)
        return {"critic_loss": loss, "policy_loss": policy_loss, "entropy": entropy.mean()}, error

    @torch.no_grad()
    def _target(self, samples: Samples, head: Tensor, temperature: Tensor, noise: Tensor) -> Tensor:
        """What the critics should say of the actions that were taken."""
        numbers = self.critics.widen(samples.next_obs)
        paid, discount = samples.paid, samples.discount
        if self.net.box:
            action, log_prob = squashed_sample(head, noise)
            q = self.judges.ahead(numbers, action)
            return critic_target(paid, discount, q, log_prob, temperature)
        log_probs = masked_log_probs(head, samples.next_mask)
        q = self.judges.ahead(numbers, None)
        return discrete_critic_target(paid, discount, q, log_probs, temperature)

    def _value(self, samples: Samples, numbers: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Fill the gradient of the critics; return their loss and every sample's error."""
        box = bool(self.net.box)
        said = self.judges.forward(numbers, samples.action if box else None, learn=True)
        said.requires_grad_()
        q = said if box else chosen(said, samples.action)
        loss, error = critic_loss(q, target, samples.weight)
        self.judges.backward(torch.autograd.grad(loss, said)[0])
        return loss.detach(), error

    def _judge(
        self, samples: Samples, numbers: Tensor, said: Tensor, temperature: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | float]:
        """Fill the gradient of the actor; return its loss, entropies and what those aim at.

        The critics' own weights learn nothing from it, and no time is spent on their gradients.
        """
        head = said.detach().requires_grad_()
        aim: Tensor | float
        if self.net.box:
            action, log_prob = squashed_sample(head, noise)
            q = self.judges.forward(numbers, action.detach(), learn=False).requires_grad_()
            loss = actor_loss(q, log_prob, temperature)
            of_q, of_log_prob = torch.autograd.grad(loss, (q, log_prob))
            grads = self.judges.action_grad(of_q), of_log_prob
            (grad,) = torch.autograd.grad((action, log_prob), head, grads)
            entropy, aim = -log_prob.detach(), self.config.target_entropy or -float(self.net.box)
        else:
            q = self.judges.forward(numbers, None, learn=False)
            log_probs = masked_log_probs(head, samples.mask)
            loss, entropy = discrete_actor_loss(q, log_probs, temperature)
            (grad,) = torch.autograd.grad(loss, head)
            aim = entropy_target(samples.mask, self.config)
        self.passes.backward(grad, grad.new_zeros(len(grad)))
        return loss.detach(), entropy.detach(), aim

    def _noise(self) -> Tensor:
        """Standard normal numbers for both draws of a step, [2, batch, box]: by seed and step."""
        key = np.array([self.seed % 2**64, self.steps], np.uint64)
        counter = np.array([0, 0, 0, NOISE], np.uint64)
        draw = np.random.Generator(np.random.Philox(key=key, counter=counter))
        shape = 2, self.replay_config.batch, self.net.box
        return torch.from_numpy(draw.standard_normal(shape, np.float32)).to(self.device)

    def _step(self, adam: PackedAdam, loss: Tensor, name: str) -> None:
        """Follow the gradient of a loss, if both are finite."""
        if self.max_grad_norm:
            norm = adam.clip(self.max_grad_norm)
        else:
            norm = torch.linalg.vector_norm(adam.packed.grad)
        if not math.isfinite(float(norm + loss)):
            raise self.diverged({name: loss, "its gradient's norm": norm})
        adam.step()

    def learned(self) -> dict[str, dict[str, Tensor]]:
        """Critics, their targets, the temperature, and what every optimiser remembers."""
        modules = {"critics": self.critics, "temperature": self.temperature}
        return {
            **{name: copied(module) for name, module in modules.items()},
            "optimiser": self.actor_adam.tensors(),
            "critic_optimiser": self.critic_adam.tensors(),
            "temperature_optimiser": self.temperature_adam.tensors(),
        }

    def put_learned(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go on with `learned` of another moment."""
        try:
            self.critics.load_state_dict(dict(tensors["critics"]))
        except RuntimeError as wrong:
            first = str(wrong).splitlines()[-1].strip()
            raise StateError(f"the checkpoint holds other critics: {first}") from None
        self.temperature.load_state_dict(dict(tensors["temperature"]))
        self.actor_adam.load(tensors["optimiser"])
        self.critic_adam.load(tensors["critic_optimiser"])
        self.temperature_adam.load(tensors["temperature_optimiser"])


class Temperature(torch.nn.Module):
    """What entropy is worth; its logarithm is what learns."""

    def __init__(self, first: float) -> None:
        super().__init__()
        self.log = torch.nn.Parameter(torch.tensor(math.log(first)))


def copied(module: torch.nn.Module) -> dict[str, Tensor]:
    """All tensors of a module by name, on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}


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


def on_device(samples: Samples, device: torch.device) -> Samples:
    """The batch where the network is."""
    if samples.obs.device.type == device.type:
        return samples
    kept = {f.name: getattr(samples, f.name) for f in fields(samples)}
    moved = {n: t.to(device, non_blocking=True) for n, t in kept.items() if n != "places"}
    return replace(samples, **moved)
