"""Segments of consecutive decisions, for backpropagation through time of recurrent networks.

The decisions of a seat are sorted by time, game after game, and cut into segments. The first of a
segment starts from the hidden state it was played with, which its row holds; later ones from the
state that the current network computes. Minibatches are made of whole segments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.learn.transitions import TO_NEXT, Transitions
from sparring.nets.net import HeadOutputs

STEP, FRESH = "segment_step", "segment_fresh"
"""Columns of every sample: its index in its segment; whether its hidden state is reset."""
Places = npt.NDArray[np.intp]


class Unrolls(Protocol):
    """Runs a recurrent network over segments."""

    def unroll(self, obs: Tensor, fresh: Tensor) -> HeadOutputs:
        """See `RecurrentNet.unroll`."""


def cut_segments(
    transitions: Transitions, seat: npt.NDArray[np.int8], samples: Places, length: int
) -> tuple[Places, dict[str, npt.NDArray[np.generic]]]:
    """Sort samples by seat and time and cut them into segments; return them with both columns.

    transitions: linked, one chain per seat. seat: of the rollout's rows [steps, games * rows].
    length: maximum decisions of a segment.
    """
    assert transitions.chains == 1, "planning refuses chains by role"
    rules, max_pending = transitions.rules, transitions.max_pending
    row = np.maximum(samples - max_pending, 0)
    step, at = np.divmod(row, transitions.games * rules.rows)
    seat_key = at // rules.rows * rules.seats + seat[step, at]
    open_before = samples < max_pending  # from the rollout before, and so the first of their seats
    seat_key = np.where(open_before, samples, seat_key)
    order = np.lexsort((np.where(open_before, -1, step), seat_key))
    samples, seat_key = samples[order], seat_key[order]
    first = np.flatnonzero(np.diff(seat_key, prepend=-1))
    number = np.arange(len(samples)) - np.repeat(first, np.diff(first, append=len(samples)))
    continues = (transitions.end[samples] == TO_NEXT)[:-1]
    continues &= transitions.next[samples[:-1]] == samples[1:]
    fresh = np.concatenate([np.ones(min(len(samples), 1), np.bool_), ~continues])
    return samples, {STEP: number % length, FRESH: fresh}


def shuffled_segments(
    step: Tensor, minibatches: int, order: np.random.Generator
) -> list[npt.NDArray[np.intp]]:
    """Shuffle whole segments into minibatches; return the samples of each.

    step: the column `STEP`. minibatches: their number; with fewer segments some are empty.
    """
    first = np.flatnonzero(step.cpu().numpy() == 0)
    length = np.diff(first, append=len(step))
    return [
        ranges(first[chosen], length[chosen])
        for chosen in np.array_split(order.permutation(len(first)), minibatches)
    ]


def ranges(first: Places, length: Places) -> Places:
    """Concatenate ranges of integers."""
    before = np.cumsum(length) - length
    return np.repeat(first - before, length) + np.arange(length.sum())


def forward_segments(network: Unrolls, minibatch: Mapping[str, Tensor]) -> HeadOutputs:
    """Return the outputs of a recurrent network for a minibatch of whole segments.

    Shorter segments are padded with zero rows.
    """
    obs, step = minibatch["obs"], minibatch[STEP]
    number = (step == 0).cumsum(0) - 1
    segments, steps = int(number[-1]) + 1, int(step.max()) + 1
    place = number * steps + step
    rows = obs.new_zeros(segments * steps, obs.shape[1])
    fresh = torch.ones(segments * steps, dtype=torch.bool, device=obs.device)
    rows[place], fresh[place] = obs, minibatch[FRESH]
    heads = network.unroll(rows.view(segments, steps, -1), fresh.view(segments, steps))
    if len(place) == segments * steps:
        return heads
    return {name: outputs[place] for name, outputs in heads.items()}
