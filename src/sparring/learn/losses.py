"""Losses of DQN and SAC as functions of tensors; no call waits for a device.

Q is what a seat is paid from here on if it takes an action and its best ones from then on. With
dueling, the policy head holds advantages and the value head what they are measured from:
Q = V + A - mean of A over legal actions. Without, the policy head holds Q itself. Either way the
best action is that of the policy head.

SAC draws continuous actions from a Gaussian and squashes them by tanh; of discrete ones it takes
expectations over the legal ones. Its tensors may have members of a population in front.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from sparring.config import SACConfig
from sparring.nets.distribution import LOG_SQRT_2PI, entropy_of, mean_and_log_std


def legal_mean(head: Tensor, mask: Tensor) -> Tensor:
    """The mean over the legal actions of each row, 0 where there is none."""
    legal = mask.to(head.dtype)
    return (head * legal).sum(-1) / legal.sum(-1).clamp(min=1)


def q_values(policy_head: Tensor, value: Tensor, mask: Tensor, *, dueling: bool) -> Tensor:
    """Q of every action in float32; exactly -inf where the mask is 0."""
    q = policy_head.float()
    if dueling:
        q = q + (value.float() - legal_mean(q, mask)).unsqueeze(-1)
    return q.masked_fill(mask == 0, -torch.inf)


def q_of(
    policy_head: Tensor, value: Tensor, mask: Tensor, action: Tensor, *, dueling: bool
) -> Tensor:
    """Q of one action of each row, in float32."""
    head = policy_head.float()
    q = head.gather(-1, action.long().unsqueeze(-1)).squeeze(-1)
    return q + value.float() - legal_mean(head, mask) if dueling else q


def best_actions(policy_head: Tensor, mask: Tensor) -> Tensor:
    """The best legal action of each row; where there is none, the first one."""
    return policy_head.masked_fill(mask == 0, -torch.inf).argmax(-1)


def td_target(
    policy_head: Tensor,
    value: Tensor,
    *,
    chooser: Tensor,
    mask: Tensor,
    paid: Tensor,
    discount: Tensor,
    dueling: bool,
) -> Tensor:
    """What the decisions are to be worth: what they were paid, and the best that follows.

    policy_head, value: of the target network about what followed.
    chooser: the policy head whose best action is taken there: the network's own (double) or the
        target's.
    mask: of what followed. Rows without a legal action have a discount of 0.
    """
    best = best_actions(chooser, mask)
    return paid + discount * q_of(policy_head, value, mask, best, dueling=dueling)


def dqn_loss(
    policy_head: Tensor,
    value: Tensor,
    *,
    mask: Tensor,
    action: Tensor,
    target: Tensor,
    dueling: bool,
    huber: float,
    weight: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean loss of the actions that were taken, and how wrong each of their values is.

    huber: errors beyond it count linearly; 0: half the square of all.
    weight: of each sample; None: 1.
    """
    q = q_of(policy_head, value, mask, action, dueling=dueling)
    if huber:
        each = functional.huber_loss(q, target, delta=huber, reduction="none")
    else:
        each = 0.5 * functional.mse_loss(q, target, reduction="none")
    loss = (each if weight is None else each * weight).mean()
    return loss, (q.detach() - target).abs()


def spread_epsilon(epsilon: float, spread: float, games: int) -> npt.NDArray[np.float32]:
    """An epsilon for every game, from epsilon itself to epsilon^(1 + spread)."""
    if not spread or games == 1:
        return np.full(games, epsilon, np.float32)
    share = np.arange(games) / (games - 1)
    return np.asarray(epsilon ** (1 + spread * share), np.float32)


LOG_2 = math.log(2)

# What follows from heads and critics: [..., batch], critics [..., 2, batch] or, of discrete
# actions, [..., 2, batch, actions]. A temperature is a number or has shape [members, 1].


def squashed_sample(head: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Draw actions within -1..1 from a Gaussian's head; return them and their log-densities.

    The density is that behind tanh: log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u)), which
    stays exact where the left side has long become log(0).
    """
    mean, log_std = mean_and_log_std(head)
    drawn = torch.addcmul(mean, log_std.exp(), noise)
    squashing = 2 * (LOG_2 - drawn - functional.softplus(-2 * drawn))
    log_prob = -0.5 * noise * noise - LOG_SQRT_2PI - log_std - squashing
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
        first = config.temperature or config.initial_temperature
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
    return config.target_entropy_share * most


def step_noise(shape: tuple[int, ...], seed: int, step: int) -> Tensor:
    """Standard normal numbers of a step: splitmix64 of both, so that neighbors are unlike."""
    x = (seed * 0x9E3779B97F4A7C15 + step * 0xD1342543DE82EF95 + 0x5AC) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return torch.randn(shape, generator=torch.Generator().manual_seed(x >> 32))
