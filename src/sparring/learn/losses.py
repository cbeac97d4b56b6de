"""Losses of DQN, QR-DQN, SAC and TD3 as pure functions of tensors, without GPU synchronization.

DQN: the policy head outputs Q(s, a). With dueling it outputs advantages A and the value head V:
Q = V + A - mean of A over legal actions. In both cases the greedy action is its argmax.

SAC samples continuous actions from a Gaussian squashed by tanh, and takes expectations over legal
discrete actions. Its tensors may have a leading dimension for the members of a population.
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
    """Mean over the legal actions of each row, 0 if there is none."""
    legal = mask.to(head.dtype)
    return (head * legal).sum(-1) / legal.sum(-1).clamp(min=1)


def q_values(policy_head: Tensor, value: Tensor, mask: Tensor, *, dueling: bool) -> Tensor:
    """Q of every action in float32; exactly -inf where the mask is 0."""
    q = policy_head.float()
    if dueling:
        q = q + (value.float() - legal_mean(q, mask)).unsqueeze(-1)
    return q.masked_fill(mask == 0, -torch.inf)


def q_taken(
    policy_head: Tensor, value: Tensor, mask: Tensor, action: Tensor, *, dueling: bool
) -> Tensor:
    """Q of one action of each row, in float32."""
    head = policy_head.float()
    q = head.gather(-1, action.long().unsqueeze(-1)).squeeze(-1)
    return q + value.float() - legal_mean(head, mask) if dueling else q


def best_actions(policy_head: Tensor, mask: Tensor) -> Tensor:
    """Argmax over the legal actions of each row; action 0 if there is none."""
    return policy_head.masked_fill(mask == 0, -torch.inf).argmax(-1)


def td_target(
    policy_head: Tensor,
    value: Tensor,
    *,
    selection_head: Tensor,
    mask: Tensor,
    reward: Tensor,
    discount: Tensor,
    dueling: bool,
) -> Tensor:
    """Return reward + discount * Q_target(next state, best next action).

    policy_head, value: outputs of the target network at the next state.
    selection_head: policy head whose argmax is the best action: of the online network (double DQN)
        or the target network.
    mask: legal actions of the next state. Rows without any have discount 0.
    """
    best = best_actions(selection_head, mask)
    return reward + discount * q_taken(policy_head, value, mask, best, dueling=dueling)


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
    """Return the mean loss of the taken actions, and the absolute TD error per sample.

    huber: delta of the Huber loss; 0 is the squared error, halved.
    weight: importance weight per sample; None: 1.
    """
    q = q_taken(policy_head, value, mask, action, dueling=dueling)
    if huber:
        per_sample = functional.huber_loss(q, target, delta=huber, reduction="none")
    else:
        per_sample = 0.5 * functional.mse_loss(q, target, reduction="none")
    loss = (per_sample if weight is None else per_sample * weight).mean()
    return loss, (q.detach() - target).abs()


def spread_epsilon(epsilon: float, spread: float, games: int) -> npt.NDArray[np.float32]:
    """Return epsilon of every game, from epsilon to epsilon^(1 + spread), as in Ape-X."""
    if not spread or games == 1:
        return np.full(games, epsilon, np.float32)
    share = np.arange(games) / (games - 1)
    return np.asarray(epsilon ** (1 + spread * share), np.float32)


# QR-DQN. Quantiles are [..., batch, quantiles, actions].

ADAM_EPS_QUANTILES = 0.01 / 32
"""Of Adam, as in the paper."""


def by_quantile(head: Tensor, actions: int) -> Tensor:
    """Return the quantiles of all actions in float32. head: [..., quantiles * actions]."""
    return head.float().reshape(*head.shape[:-1], -1, actions)


def quantiles_of(quantiles: Tensor, action: Tensor) -> Tensor:
    """Return the quantiles of one action of each row [..., batch, quantiles]."""
    index = action.long()[..., None, None].expand(*quantiles.shape[:-1], 1)
    return quantiles.gather(-1, index).squeeze(-1)


def quantile_target(
    quantiles: Tensor, *, means: Tensor, mask: Tensor, reward: Tensor, discount: Tensor
) -> Tensor:
    """Return reward + discount * the quantiles of the best next action [..., batch, quantiles].

    quantiles: of the target network at the next state.
    means: values of actions, of which the best legal one is chosen: of the target network, or of
        the online network (double).
    mask: legal actions of the next state. Rows without any have discount 0.
    """
    following = quantiles_of(quantiles, best_actions(means, mask))
    return reward.unsqueeze(-1) + discount.unsqueeze(-1) * following


def quantile_loss(
    quantiles: Tensor,
    *,
    action: Tensor,
    target: Tensor,
    huber: float,
    weight: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean loss of quantile regression, and the absolute error of the mean per sample.

    Every quantile is held against every target; the loss of a sample is the sum over quantiles of
    the mean over targets. The k-th of N quantiles is the one at (k + 1/2) / N.

    huber: errors up to this count quadratically; 0: none do.
    weight: importance weight per sample; None: 1.
    """
    mine = quantiles_of(quantiles, action)
    count = mine.shape[-1]
    share = (torch.arange(count, device=mine.device) + 0.5) / count
    one = mine.unsqueeze(-1).expand(*mine.shape, target.shape[-1])
    other = target.unsqueeze(-2).expand(*target.shape[:-1], count, target.shape[-1])
    if huber:  # [..., batch, quantiles, targets]
        size = functional.huber_loss(one, other, delta=huber, reduction="none") / huber
    else:
        size = functional.l1_loss(one, other, reduction="none")
    share = share.unsqueeze(-1)
    per_sample = (torch.where(other < one.detach(), 1 - share, share) * size).mean(-1).sum(-1)
    loss = (per_sample if weight is None else per_sample * weight).mean()
    return loss, (mine.detach().mean(-1) - target.mean(-1)).abs()


LOG_2 = math.log(2)

# SAC. Tensors are [..., batch]; Q of the critics [..., critics, batch], or [..., critics, batch,
# actions] for discrete actions. A temperature is a number or a tensor [members, 1].


def squashed_sample(head: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Sample actions tanh(u) from a Gaussian head; return them and their log-densities.

    log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u)); the right side stays finite for large |u|.
    """
    mean, log_std = mean_and_log_std(head)
    u = torch.addcmul(mean, log_std.exp(), noise)
    log_det = 2 * (LOG_2 - u - functional.softplus(-2 * u))
    log_prob = -0.5 * noise * noise - LOG_SQRT_2PI - log_std - log_det
    return torch.tanh(u), log_prob.sum(-1)


def critic_target(
    reward: Tensor,
    discount: Tensor,
    next_q: Tensor,
    next_log_prob: Tensor,
    temperature: Tensor | float,
) -> Tensor:
    """Soft Bellman target with the minimum of the target critics.

    A negative discount marks the value of the opponent's seat in a zero-sum game: the minimum is
    taken after multiplication with the discount.
    """
    min_q = (discount.unsqueeze(-2) * next_q).amin(-2)
    return _soft_target(reward, discount, min_q, -next_log_prob, temperature)


def _soft_target(
    reward: Tensor,
    discount: Tensor,
    next_value: Tensor,
    entropy: Tensor,
    temperature: Tensor | float,
) -> Tensor:
    """Return reward + discounted next Q + discount * temperature * entropy.

    The entropy of the opponent's decision (discount < 0) does not count.
    """
    next_value = torch.addcmul(next_value, discount.clamp(min=0), temperature * entropy)
    # After the last decision of a game the next row is undefined and may hold NaN.
    return reward + next_value.masked_fill(discount == 0, 0.0)


def critic_loss(q: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return half the squared error summed over critics, and the absolute TD error per sample."""
    target = target.unsqueeze(-2).expand_as(q)
    squared_error = functional.mse_loss(q, target, reduction="none").sum(-2)
    return (0.5 * weight * squared_error).mean(-1), (q.detach() - target).abs().mean(-2)


def actor_loss(
    q: Tensor, log_prob: Tensor, temperature: Tensor | float, *, of: str = "min"
) -> Tensor:
    """Mean of temperature * log_prob - Q, the smallest one or the mean. of: min or mean."""
    return (temperature * log_prob - over_critics(q, -2, of)).mean(-1)


def over_critics(q: Tensor, dim: int, of: str) -> Tensor:
    """Return the smallest Q of all critics, or their mean. of: min or mean."""
    return q.mean(dim) if of == "mean" else q.amin(dim)


def drawn_critics(count: int, chosen: int, seed: int, step: int) -> Tensor | None:
    """Return the critics that a step's target uses, drawn without replacement; None: all."""
    if chosen == count:
        return None
    return torch.randperm(count, generator=generator_of(seed, step, 0xC17))[:chosen]


def temperature_loss(log_temperature: Tensor, entropy: Tensor, target: Tensor | float) -> Tensor:
    """Entropy below its target raises the temperature; gradients reach only the temperature."""
    return log_temperature * (entropy - target).detach().mean(-1)


class Temperature(torch.nn.Module):
    """The entropy coefficient, parametrized by its logarithm."""

    def __init__(self, config: SACConfig) -> None:
        super().__init__()
        first = config.temperature or config.initial_temperature
        self.log = torch.nn.Parameter(torch.tensor(math.log(first)))

    def value(self) -> float:
        """Return the coefficient; synchronizes with a GPU."""
        return math.exp(float(self.log.detach()))


# TD3


def smoothed_action(head: Tensor, noise: Tensor, *, std: float, limit: float) -> Tensor:
    """Return the action of a policy head with clipped noise, within the bounds.

    noise: standard normal [..., batch, box].
    """
    mean, _ = head.chunk(2, dim=-1)
    return (torch.tanh(mean) + (noise * std).clamp(-limit, limit)).clamp(-1.0, 1.0)


# Discrete actions


def discrete_critic_target(
    reward: Tensor,
    discount: Tensor,
    next_q: Tensor,
    next_log_probs: Tensor,
    temperature: Tensor | float,
) -> Tensor:
    """`critic_target` as an expectation over legal actions."""
    min_q = (discount.unsqueeze(-1).unsqueeze(-3) * next_q).amin(-3)
    next_value = (next_log_probs.exp() * min_q).sum(-1)
    return _soft_target(reward, discount, next_value, entropy_of(next_log_probs), temperature)


def discrete_actor_loss(
    q: Tensor, log_probs: Tensor, temperature: Tensor | float, *, of: str = "min"
) -> tuple[Tensor, Tensor]:
    """`actor_loss` as an expectation over legal actions, and the entropy of every row."""
    probs, finite = log_probs.exp(), log_probs.masked_fill(torch.isneginf(log_probs), 0.0)
    negative_entropy = (probs * finite).sum(-1)
    value = (probs * over_critics(q, -3, of)).sum(-1)
    return (temperature * negative_entropy - value).mean(-1), -negative_entropy.detach()


def gather_q(q: Tensor, action: Tensor) -> Tensor:
    """Q of the taken actions, [..., critics, batch]."""
    at = action.long().unsqueeze(-2).unsqueeze(-1).expand(*q.shape[:-1], 1)
    return q.gather(-1, at).squeeze(-1)


def entropy_target(mask: Tensor, config: SACConfig) -> Tensor:
    """Return the target entropy of every row: a share of log(number of legal actions).

    With one legal action target and entropy are 0: such rows do not change the temperature.
    """
    max_entropy = (mask != 0).sum(-1).clamp(min=1).log()
    if config.target_entropy:
        return max_entropy.clamp(max=config.target_entropy)
    return config.target_entropy_share * max_entropy


def step_noise(shape: tuple[int, ...], seed: int, step: int) -> Tensor:
    """Standard normal noise of a step."""
    return torch.randn(shape, generator=generator_of(seed, step, 0x5AC))


def generator_of(seed: int, step: int, purpose: int) -> torch.Generator:
    """Return the random numbers of a step; splitmix64 of (seed, step) decorrelates steps."""
    x = (seed * 0x9E3779B97F4A7C15 + step * 0xD1342543DE82EF95 + purpose) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return torch.Generator().manual_seed(x >> 32)
