"""The one distribution over discrete actions. There is no unmasked one.

Sampling, log-probabilities, entropy and arg-max all follow from `masked_log_probs`. On a CPU,
rollouts sample through `csrc/core/sampler.hpp`, which a test holds equal to it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring import _native


def masked_log_probs(logits: Tensor, mask: Tensor) -> Tensor:
    """Log-probabilities in float32; exactly -inf (probability 0) where the mask is 0."""
    return torch.log_softmax(logits.float().masked_fill(mask == 0, -torch.inf), dim=-1)


def entropy_of(log_probs: Tensor) -> Tensor:
    """Entropy of each row; actions of probability 0 add nothing, also to the gradient."""
    safe = log_probs.masked_fill(torch.isneginf(log_probs), 0.0)
    return -(log_probs.exp() * safe).sum(-1)


def log_prob_of(log_probs: Tensor, action: Tensor) -> Tensor:
    """The log-probability of the chosen action of each row."""
    return log_probs.gather(-1, action.long().unsqueeze(-1)).squeeze(-1)


class Sampler:
    """Draws actions row by row from (seed, row, draw number): equal for any batch split."""

    def __init__(self, seed: int) -> None:
        self.seed = seed % 2**64

    def draw(
        self,
        logits: Tensor,
        mask: npt.NDArray[np.uint8],
        *,
        rollout: int,
        step: int,
        rows: npt.NDArray[np.uint32] | None = None,
        greedy: bool = False,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Return an action and its log-probability for every row. `rows` are their numbers."""
        count = len(mask)
        rows = np.arange(count, dtype=np.uint32) if rows is None else rows
        action, log_prob = np.empty(count, np.int32), np.empty(count, np.float32)
        _native.sample_masked(
            np.ascontiguousarray(logits.detach().float().cpu().numpy()),
            np.ascontiguousarray(mask),
            self.seed,
            np.ascontiguousarray(rows, np.uint32),
            rollout,
            step,
            greedy,
            action,
            log_prob,
        )
        return action, log_prob
