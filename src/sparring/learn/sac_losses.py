"""Losses of soft actor-critic, as functions of tensors that do not wait for a device.

Continuous actions are drawn from a Gaussian and squashed by tanh; of discrete ones expectations
are taken over the legal ones. Tensors may have members of a population in front.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from sparring.config import SACConfig
from sparring.nets.distribution import LOG_SQRT_TAU, entropy_of, mean_and_spread

LOG_2 = math.log(2)

# What follows from heads and critics: [..., batch], critics [..., 2, batch] or, of discrete
# actions, [..., 2, batch, actions]. A temperature is a number or has shape [members, 1].


def squashed_sample(head: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Draw actions within -1..1 from a Gaussian's head; return them and their log-densities.

    The density is that behind tanh: log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u)), which
    stays exact where the left side has long become log(0).
    """
    mean, log_spread = mean_and_spread(head)
    drawn = torch.addcmul(mean, log_spread.exp(), noise)
    squashing = 2 * (LOG_2 - drawn - functional.softplus(-2 * drawn))
    log_prob = -0.5 * noise * noise - LOG_SQRT_TAU - log_spread - squashing
    return torch.tanh(drawn), log_prob.sum(-1)


def critic_target(
    paid: Tensor,
    discount: Tensor,
    next_q: Tensor,
    next_log_prob: Tensor,
    temperature: Tensor | float,
) -> Tensor:
    """What critics should have said: paid, and the more cautious critic's view of what follows.

    A negative discount means that the value is that of the other seat, whose gain is a loss: there
    the larger estimate is the cautious one.
    """
    cautious = (discount.unsqueeze(-2) * next_q).amin(-2)
    return _with_entropy(paid, discount, cautious, -next_log_prob, temperature)


def _with_entropy(
    paid: Tensor, discount: Tensor, following: Tensor, entropy: Tensor, temperature: Tensor | float
) -> Tensor:
    """Add what is paid, what follows, and the worth of the next decision's entropy.

    Not where that decision is the other seat's: what it may still choose is worth nothing here.
    """
    following = torch.addcmul(following, discount.clamp(min=0), temperature * entropy)
    # Behind the end there is no row, and whatever stands in its place is not to be read.
    return paid + following.masked_fill(discount == 0, 0.0)


def critic_loss(q: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Half the squared errors of both critics, and every sample's mean error."""
    wanted = target.unsqueeze(-2).expand_as(q)
    each = functional.mse_loss(q, wanted, reduction="none").sum(-2)
    return (0.5 * weight * each).mean(-1), (q.detach() - wanted).abs().mean(-2)


def actor_loss(q: Tensor, log_prob: Tensor, temperature: Tensor | float) -> Tensor:
    """Choose what the more cautious critic likes, and stay undecided."""
    return (temperature * log_prob - q.amin(-2)).mean(-1)


def temperature_loss(log_temperature: Tensor, entropy: Tensor, target: Tensor | float) -> Tensor:
    """Entropy below its target raises the temperature. No other loss learns from this one."""
    return log_temperature * (entropy - target).detach().mean(-1)


class Temperature(torch.nn.Module):
    """What entropy is worth; its logarithm is what learns."""

    def __init__(self, config: SACConfig) -> None:
        super().__init__()
        first = config.temperature or config.first_temperature
        self.log = torch.nn.Parameter(torch.tensor(math.log(first)))

    def value(self) -> float:
        """The temperature itself; waits for a device."""
        return math.exp(float(self.log.detach()))


# Discrete actions


def discrete_critic_target(
    paid: Tensor,
    discount: Tensor,
    next_q: Tensor,
    next_log_probs: Tensor,
    temperature: Tensor | float,
) -> Tensor:
    """`critic_target`, as an expectation over the legal actions."""
    cautious = (discount.unsqueeze(-1).unsqueeze(-3) * next_q).amin(-3)
    following = (next_log_probs.exp() * cautious).sum(-1)
    return _with_entropy(paid, discount, following, entropy_of(next_log_probs), temperature)


def discrete_actor_loss(
    q: Tensor, log_probs: Tensor, temperature: Tensor | float
) -> tuple[Tensor, Tensor]:
    """`actor_loss`, as an expectation over the legal actions; and the entropy of every row."""
    probs, safe = log_probs.exp(), log_probs.masked_fill(torch.isneginf(log_probs), 0.0)
    certainty = (probs * safe).sum(-1)
    value = (probs * q.amin(-3)).sum(-1)
    return (temperature * certainty - value).mean(-1), -certainty.detach()


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


def step_noise(shape: tuple[int, ...], seed: int, step: int) -> Tensor:
    """Standard normal numbers of a step: splitmix64 of both, so that neighbours are unlike."""
    x = (seed * 0x9E3779B97F4A7C15 + step * 0xD1342543DE82EF95 + 0x5AC) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return torch.randn(shape, generator=torch.Generator().manual_seed(x >> 32))
