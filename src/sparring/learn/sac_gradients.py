"""Gradients of SAC's losses, written out: autograd's book-keeping costs more than such few numbers.

Tests hold them equal to those of the losses in `learn.sac`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sparring.nets.distribution import LOG_SPREAD


def critic_gradient(q: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of `critic_loss`: the loss, both critics' errors, and the gradient of what they said."""
    error = q - target
    grad = error * (weight / len(weight))
    return 0.5 * (grad * error).sum(), error, grad


def actor_gradient(q: Tensor, log_prob: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """Of `actor_loss`: the loss, and the gradient of what critics said.

    The gradient of every log-density is temperature / batch.
    """
    batch = len(log_prob)
    cautious, which = q.min(0)
    second = which.float().div_(-batch)
    grads = torch.stack((second.neg() - 1 / batch, second))
    return (temperature * log_prob - cautious).mean(), grads


def head_gradient(
    head: Tensor, noise: Tensor, action: Tensor, of_action: Tensor, of_log_prob: Tensor
) -> Tensor:
    """Of `squashed_sample`: the gradient of the head, from those of actions and log-densities.

    of_log_prob: the same for all rows.
    """
    log_spread = head[..., action.shape[-1] :]
    kept = log_spread.clamp(*LOG_SPREAD)
    # The density falls by 1 - tanh^2, whose logarithm changes by -2 tanh.
    of_mean = torch.addcmul(2 * of_log_prob * action, of_action, 1 - action * action)
    of_spread = of_mean * kept.exp() * noise - of_log_prob
    return torch.cat((of_mean, of_spread * (log_spread == kept)), -1)
