"""Action distributions: masked categorical for discrete actions, Gaussian for continuous ones.

There is no unmasked distribution over discrete actions: sampling, log-probabilities, entropy and
arg-max all follow from `masked_log_probs`. A Gaussian's head holds the mean and the log standard
deviation of every dimension. `nets/sampling.py` draws from both.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from sparring.nets.sampling import LOG_STD


def masked_log_probs(logits: Tensor, mask: Tensor) -> Tensor:
    """Return log-probabilities in float32; exactly -inf (probability 0) where the mask is 0."""
    return torch.log_softmax(logits.float().masked_fill(mask == 0, -torch.inf), dim=-1)


def entropy_of(log_probs: Tensor) -> Tensor:
    """Return the entropy of each row; actions of probability 0 add nothing, nor to gradients."""
    safe = log_probs.masked_fill(torch.isneginf(log_probs), 0.0)
    return -(log_probs.exp() * safe).sum(-1)


def log_prob_of(log_probs: Tensor, action: Tensor) -> Tensor:
    """Return the log-probability of each row's action."""
    return log_probs.gather(-1, action.long().unsqueeze(-1)).squeeze(-1)


SQUASHED_BOUND = 0.99
"""From here on, a squashed action counts as one at its bound, which no sample reaches."""
INITIAL_LOG_STD = math.log(0.6)
"""At the start of training, sampled actions reach their bounds now and then."""
LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def mean_and_log_std(head: Tensor) -> tuple[Tensor, Tensor]:
    """Split a Gaussian's head into means and log standard deviations."""
    mean, log_std = head.float().chunk(2, dim=-1)
    return mean, log_std.clamp(*LOG_STD)


def gaussian_log_prob(head: Tensor, action: Tensor) -> Tensor:
    """Return the log-density of sampled actions, before clipping or squashing.

    Neither changes the ratio of two densities, which is all that PPO needs.
    """
    mean, log_std = mean_and_log_std(head)
    z = (action - mean) * (-log_std).exp()
    return (-0.5 * z**2 - log_std - LOG_SQRT_2PI).sum(-1)


def bounded_log_prob(head: Tensor, action: Tensor, *, squash: bool) -> Tensor:
    """Return the log-likelihood of a game's continuous actions, which end at -1 and 1.

    An action at a bound counts by the probability of all samples that end there: those beyond the
    bound, or squashed ones beyond `SQUASHED_BOUND`.
    """
    mean, log_std = mean_and_log_std(head)
    bound = SQUASHED_BOUND if squash else 1.0
    inside, edge = action.clamp(-bound, bound), math.atanh(bound) if squash else bound
    sample = torch.atanh(inside) if squash else inside
    inverse = (-log_std).exp()
    density = -0.5 * ((sample - mean) * inverse) ** 2 - log_std - LOG_SQRT_2PI
    if squash:
        density = density - torch.log1p(-(inside**2))
    # Its gradient is a difference of squares, of which float32 keeps nothing far from the bound.
    beyond = torch.special.log_ndtr(((mean * action.sign() - edge) * inverse).double()).float()
    return torch.where(action.abs() >= bound, beyond, density).sum(-1)


def gaussian_entropy(head: Tensor) -> Tensor:
    """Return the entropy of each row's Gaussian, before clipping or squashing."""
    _, log_std = mean_and_log_std(head)
    return (log_std + 0.5 + LOG_SQRT_2PI).sum(-1)


def categorical_kl(logits: Tensor, other: Tensor) -> Tensor:
    """Return KL(policy || other) of each row. other: log-probabilities, -inf where illegal."""
    legal = torch.isfinite(other)
    log_probs = masked_log_probs(logits, legal).masked_fill(~legal, 0.0)
    return (log_probs.exp() * (log_probs - other.masked_fill(~legal, 0.0))).sum(-1)


def gaussian_kl(head: Tensor, other: Tensor) -> Tensor:
    """Return KL(policy || other) of each row's Gaussians; squashing both does not change it."""
    (mean, log_std), (other_mean, other_log_std) = mean_and_log_std(head), mean_and_log_std(other)
    squares = (2 * log_std).exp() + (mean - other_mean) ** 2
    each = other_log_std - log_std + 0.5 * squares * (-2 * other_log_std).exp() - 0.5
    return each.sum(-1)


def evaluate_actions(head: Tensor, mask: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """Return log-probability of the action and entropy of every row, for both kinds of actions."""
    if action.is_floating_point():
        return gaussian_log_prob(head, action), gaussian_entropy(head)
    log_probs = masked_log_probs(head, mask)
    return log_prob_of(log_probs, action), entropy_of(log_probs)
