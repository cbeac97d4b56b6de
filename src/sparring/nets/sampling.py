"""Actions drawn from the outputs of a policy head, as arrays. No torch.

`csrc/nets/sampler.hpp` draws; a test checks that it agrees with `nets/distribution.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import _native

Floats = npt.NDArray[np.float32]

LOG_STD = (_native.MIN_LOG_STD, _native.MAX_LOG_STD)
"""Smallest and largest log standard deviation. Actions are bounded by -1 and 1."""
MAX_TANH = 1 - 2.0**-23
"""Largest absolute value of a squashed action."""


def log_softmax(logits: Floats, mask: npt.NDArray[np.uint8] | None = None) -> Floats:
    """Return log-probabilities over the last axis; exactly -inf where the mask is 0."""
    legal = logits if mask is None else np.where(mask == 0, -np.float32(np.inf), logits)
    shifted = legal - legal.max(-1, keepdims=True)
    log_probs: Floats = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return log_probs


def mean_and_std(head: Floats) -> tuple[Floats, Floats]:
    """Split a Gaussian's head into means and standard deviations."""
    mean, log_std = np.split(head, 2, axis=-1)
    return mean, np.exp(log_std.clip(*LOG_STD))


def squash_actions(action: npt.NDArray[Any], *, squash: bool) -> npt.NDArray[Any]:
    """Return the game's actions for sampled ones. Without squashing the game clips them."""
    if action.dtype != np.float32:
        return action
    return np.tanh(action) if squash else action


def unsquash_actions(action: npt.NDArray[Any], *, squash: bool) -> npt.NDArray[Any]:
    """Return the sampled actions for a game's actions: the inverse of `squash_actions`."""
    if action.dtype != np.float32 or not squash:
        return action
    return np.asarray(np.arctanh(action.clip(-MAX_TANH, MAX_TANH)))


def to_floats(numbers: Any) -> Floats:
    """Return an array, or a tensor of any device, as float32 numbers in order."""
    if not isinstance(numbers, np.ndarray):
        numbers = numbers.detach().float().cpu().numpy()
    return np.ascontiguousarray(numbers, np.float32)


class ActionSampler:
    """Samples actions by (seed, row, rollout, step): independent of how rows are batched."""

    def __init__(self, seed: int) -> None:
        self.seed = seed % 2**64

    def draw(
        self,
        logits: Any,
        mask: npt.NDArray[np.uint8],
        *,
        rollout: int,
        step: int | npt.NDArray[Any],
        rows: npt.NDArray[Any] | None = None,
        greedy: bool = False,
        epsilon: npt.NDArray[np.float32] | None = None,
        squash: bool = False,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Return an action and its log-probability for every row.

        logits: outputs of the policy head, an array or a tensor.
        rows: indices of the rows, 0..B-1 if left out.
        step: one for all rows, or one per row.
        A mask without columns means that the head is a Gaussian's; its actions are not squashed.
        epsilon: probability per row of a uniformly random legal action instead; the
            log-probability stays that of the head. Continuous actions are uniform in the game,
            which sees them through tanh if `squash` is set.
        """
        count = len(mask)
        indices = np.arange(count) if rows is None else rows
        if isinstance(step, np.ndarray):
            options: dict[str, Any] = {"rollout": rollout, "greedy": greedy, "squash": squash}
            return self._draw_steps(logits, mask, step, rows=indices, epsilon=epsilon, **options)
        rows = np.ascontiguousarray(indices, np.uint32)
        head = to_floats(logits)
        log_prob = np.empty(count, np.float32)
        explore = None if epsilon is None else np.ascontiguousarray(epsilon, np.float32)
        arguments = (self.seed, rows, rollout, step, greedy, explore)
        action: npt.NDArray[Any]
        if mask.shape[1] == 0:
            action = np.empty((count, head.shape[1] // 2), np.float32)
            _native.sample_gaussian(head, *arguments, squash, action, log_prob)
        else:
            action = np.empty(count, np.int32)
            legal = np.ascontiguousarray(mask)
            _native.sample_masked(head, legal, *arguments, action, log_prob)
        return action, log_prob

    def _draw_steps(
        self,
        logits: Any,
        mask: npt.NDArray[np.uint8],
        step: npt.NDArray[Any],
        *,
        rows: npt.NDArray[Any],
        epsilon: npt.NDArray[np.float32] | None,
        **options: Any,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Draw for rows of several steps, one step at a time."""
        head, order = to_floats(logits), np.argsort(step, kind="stable")
        actions, log_probs = [], []
        for indices in np.split(order, np.flatnonzero(np.diff(step[order])) + 1):
            action, log_prob = self.draw(
                head[indices],
                mask[indices],
                step=int(step[indices[0]]),
                rows=rows[indices],
                epsilon=None if epsilon is None else epsilon[indices],
                **options,
            )
            actions.append(action)
            log_probs.append(log_prob)
        inverse = np.argsort(order, kind="stable")
        return np.concatenate(actions)[inverse], np.concatenate(log_probs)[inverse]
