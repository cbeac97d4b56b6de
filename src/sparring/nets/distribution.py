"""The two distributions over actions: a masked one for discrete actions, a Gaussian for others.

There is no unmasked distribution over discrete actions: sampling, log-probabilities, entropy and
arg-max all follow from `masked_log_probs`. A Gaussian's head gives a mean and the logarithm of a
spread for every number. On a CPU, rollouts sample through `csrc/nets/sampler.hpp`, which a test
holds equal to both.
"""

from __future__ import annotations

import math
from typing import Any

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


LOG_STD = (_native.MIN_LOG_STD, _native.MAX_LOG_STD)
"""Smallest and largest logarithm of a Gaussian's spread. Bounds of actions are -1 and 1."""
MAX_TANH = 1 - 2.0**-23
"""The nearest to 1 that a squashed action comes."""
INITIAL_LOG_STD = math.log(0.6)
"""Where it starts: actions reach their bounds now and then."""
LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def mean_and_log_std(head: Tensor) -> tuple[Tensor, Tensor]:
    """Return the means and the logarithms of the spreads that a Gaussian's head stands for."""
    mean, log_std = head.float().chunk(2, dim=-1)
    return mean, log_std.clamp(*LOG_STD)


def gaussian_log_prob(head: Tensor, action: Tensor) -> Tensor:
    """The log-density of actions as they were drawn, before bounds or squashing.

    Neither changes the ratio of two densities, which is all that PPO asks for.
    """
    mean, log_std = mean_and_log_std(head)
    off = (action - mean) * (-log_std).exp()
    return (-0.5 * off**2 - log_std - LOG_SQRT_2PI).sum(-1)


def gaussian_entropy(head: Tensor) -> Tensor:
    """Entropy of each row's Gaussian, before bounds or squashing."""
    _, log_std = mean_and_log_std(head)
    return (log_std + 0.5 + LOG_SQRT_2PI).sum(-1)


def evaluate_actions(head: Tensor, mask: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of the chosen action and entropy of every row, for either kind of action."""
    if action.is_floating_point():
        return gaussian_log_prob(head, action), gaussian_entropy(head)
    log_probs = masked_log_probs(head, mask)
    return log_prob_of(log_probs, action), entropy_of(log_probs)


def played(drawn: npt.NDArray[Any], *, squash: bool) -> npt.NDArray[Any]:
    """What a game is given for drawn actions. Without squashing it cuts them off at its bounds."""
    if drawn.dtype != np.float32:
        return drawn
    return np.tanh(drawn) if squash else drawn


def unsquash_actions(wanted: npt.NDArray[Any], *, squash: bool) -> npt.NDArray[Any]:
    """What has to be drawn so that a game is given what is wanted: the inverse of `played`."""
    if wanted.dtype != np.float32 or not squash:
        return wanted
    return np.asarray(np.arctanh(wanted.clip(-MAX_TANH, MAX_TANH)))


class ActionSampler:
    """Draws actions row by row from (seed, row, draw number): equal for any batch split."""

    def __init__(self, seed: int) -> None:
        self.seed = seed % 2**64

    def draw(
        self,
        logits: Tensor,
        mask: npt.NDArray[np.uint8],
        *,
        rollout: int,
        step: int | npt.NDArray[Any],
        rows: npt.NDArray[Any] | None = None,
        greedy: bool = False,
        epsilon: npt.NDArray[np.float32] | None = None,
        squash: bool = False,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Return an action and its log-probability for every row. `rows` are their numbers.

        step: of all rows, or of each.
        Masks of no columns mean that the head is a Gaussian's; its actions are not yet squashed.
        epsilon: for every row, how probable it is that any legal action is taken instead; the
            log-probability stays that of the head's. Continuous ones are uniform for the games,
            which see them through tanh if there is `squash`.
        """
        count = len(mask)
        numbers = np.arange(count) if rows is None else rows
        if isinstance(step, np.ndarray):
            same: dict[str, Any] = {"rollout": rollout, "greedy": greedy, "squash": squash}
            return self._draw_steps(logits, mask, step, rows=numbers, epsilon=epsilon, **same)
        rows = np.ascontiguousarray(numbers, np.uint32)
        head = np.ascontiguousarray(logits.detach().float().cpu().numpy())
        log_prob = np.empty(count, np.float32)
        explored = None if epsilon is None else np.ascontiguousarray(epsilon, np.float32)
        where = (self.seed, rows, rollout, step, greedy, explored)
        action: npt.NDArray[Any]
        if mask.shape[1] == 0:
            action = np.empty((count, head.shape[1] // 2), np.float32)
            _native.sample_gaussian(head, *where, squash, action, log_prob)
        else:
            action = np.empty(count, np.int32)
            legal = np.ascontiguousarray(mask)
            _native.sample_masked(head, legal, *where, action, log_prob)
        return action, log_prob

    def _draw_steps(
        self,
        logits: Tensor,
        mask: npt.NDArray[np.uint8],
        step: npt.NDArray[Any],
        *,
        rows: npt.NDArray[Any],
        epsilon: npt.NDArray[np.float32] | None,
        **same: Any,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Draw for rows of several steps: those of each as if they were alone."""
        head, order = logits.detach().float().cpu(), np.argsort(step, kind="stable")
        actions, log_probs = [], []
        for one in np.split(order, np.flatnonzero(np.diff(step[order])) + 1):
            own = None if epsilon is None else epsilon[one]
            drawn = self.draw(
                head[torch.from_numpy(one)],
                mask[one],
                step=int(step[one[0]]),
                rows=rows[one],
                epsilon=own,
                **same,
            )
            actions.append(drawn[0])
            log_probs.append(drawn[1])
        back = np.argsort(order, kind="stable")
        return np.concatenate(actions)[back], np.concatenate(log_probs)[back]
