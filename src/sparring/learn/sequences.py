"""Decisions in a row, for networks with a state: a gradient goes back through several of them.

The decisions of one seat of one game lie in the order in which they were made, those of its next
game behind them, and are cut into segments. The first of a segment has the state that it was played
with, which lies in its row; later ones have the state that the network, as it is now, makes of the
one before. Minibatches are whole segments.
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
"""Of every sample: its number in its segment; whether it does not go on from the one before."""
Places = npt.NDArray[np.intp]


class Unrolls(Protocol):
    """Runs a network with a state over decisions in a row."""

    def unroll(self, obs: Tensor, fresh: Tensor) -> HeadOutputs:
        """See `RecurrentNet.unroll`."""


def in_sequence(
    transitions: Transitions, seat: npt.NDArray[np.int8], samples: Places, length: int
) -> tuple[Places, dict[str, npt.NDArray[np.generic]]]:
    """Return the samples in the order in which seats decided, and where segments begin.

    transitions: linked, a chain for every seat. seat: of the rollout's rows [steps, games * rows].
    length: most decisions of a segment.
    """
    assert transitions.chains == 1, "planning refuses chains by role"
    rules, carried = transitions.rules, transitions.carried
    row = np.maximum(samples - carried, 0)
    step, at = np.divmod(row, transitions.games * rules.rows)
    decider = at // rules.rows * rules.seats + seat[step, at]
    open_before = samples < carried  # from the rollout before, and so the first of their seats
    decider = np.where(open_before, samples, decider)
    order = np.lexsort((np.where(open_before, -1, step), decider))
    samples, decider = samples[order], decider[order]
    first = np.flatnonzero(np.diff(decider, prepend=-1))
    number = np.arange(len(samples)) - np.repeat(first, np.diff(first, append=len(samples)))
    goes_on = (transitions.end[samples] == TO_NEXT)[:-1]
    goes_on &= transitions.next[samples[:-1]] == samples[1:]
    fresh = np.concatenate([np.ones(min(len(samples), 1), np.bool_), ~goes_on])
    return samples, {STEP: number % length, FRESH: fresh}


def shuffled_segments(
    step: Tensor, parts: int, order: np.random.Generator
) -> list[npt.NDArray[np.intp]]:
    """Deal whole segments to minibatches of about equal numbers of them; return their samples.

    step: the column of all samples. parts: how many minibatches; where there are fewer segments,
    some have none.
    """
    first = np.flatnonzero(step.cpu().numpy() == 0)
    length = np.diff(first, append=len(step))
    return [
        ranges(first[mine], length[mine])
        for mine in np.array_split(order.permutation(len(first)), parts)
    ]


def ranges(first: Places, length: Places) -> Places:
    """Put stretches of numbers behind each other."""
    before = np.cumsum(length) - length
    return np.repeat(first - before, length) + np.arange(length.sum())


def say_in_sequence(network: Unrolls, minibatch: Mapping[str, Tensor]) -> HeadOutputs:
    """What heads say about the rows of whole segments, each after those before it.

    Shorter segments are filled up with rows of which nothing is asked.
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
    return {name: said[place] for name, said in heads.items()}
