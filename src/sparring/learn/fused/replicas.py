"""Replicas on GPUs: what an update computes from all samples is summed, see `learn.process_group`.

Sums are part of the update's graph where the process group can be captured. Otherwise the graph is
split there, and the host sums. tests/learn/test_fused_replicas.py compares means with those of one
learner, tests/cuda/test_devices.py whole updates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from sparring.learn.fused.graphs import Figures
from sparring.learn.process_group import ProcessGroup

COUNTED = frozenset({"samples", "decisions", "opponent_rows", "forced", "frozen", "cuts_dropped"})
"""Figures that are sums over games; with those that begin with `PARTS`."""
PARTS = ("earned_", "count_")


class ReplicaSums:
    """Sums over all replicas, in the same order in each."""

    def __init__(self, group: ProcessGroup, between: Callable[[Callable[[], None]], None]) -> None:
        """between: runs work of the host between two graphs."""
        self.group, self._between = group, between

    def add_up(self, *tensors: Tensor) -> None:
        """Sum tensors in place, with the same bits in every replica."""
        work = partial(self._add_up, tensors)
        if self.group.captures:
            work()
        else:
            self._between(work)

    def _add_up(self, tensors: tuple[Tensor, ...]) -> None:
        for tensor in tensors:
            self.group.sum_(tensor)


class FigureTotals:
    """Figures of all replicas: totals of counts, means of the others.

    Losses are those of all replicas already, and so is their mean.
    """

    def __init__(self, sums: ReplicaSums, figures: Figures, met: Tensor) -> None:
        """met: results against opponents."""
        self.sums, self.figures, self.met = sums, figures, met
        self._share = figures.by_name(lambda name: 1.0 if is_count(name) else 1 / sums.group.size)

    def take(self) -> None:
        """Replace the figures here by those of all replicas."""
        self.sums.add_up(self.figures.on_device, self.met)
        self.figures.on_device.mul_(self._share)


def is_count(name: str) -> bool:
    """Whether a figure, of a role or of all, is a sum over games."""
    last = name.rpartition("/")[2]
    return last in COUNTED or last.startswith(PARTS)


class GradientMeans:
    """Means of gradients and losses over the samples of a minibatch in all replicas.

    One flat array holds them and the number of samples, so that a step synchronizes once.
    """

    def __init__(self, sums: ReplicaSums, grad: Tensor, losses: int = 0) -> None:
        """grad: gradients of all members [members, size]. losses: number of losses."""
        self.sums = sums
        members, size = grad.shape
        self.flat = grad.new_zeros(members, size + losses + 2)
        self._grad, self._losses = self.flat[:, :size], self.flat[:, size : size + losses]
        self._rows, self._diverged = self.flat[:, -2:-1], self.flat[:, -1]

    def take(
        self, grad: Tensor, rows: Tensor, diverged: Tensor, losses: Tensor | None = None
    ) -> None:
        """Replace gradients and losses by the means over all replicas.

        rows: samples of the minibatch here, by member. diverged: is set if it is in any replica.
        """
        self._rows.copy_(rows[:, None])
        torch.mul(grad, self._rows, out=self._grad)
        if losses is not None:
            torch.mul(losses, self._rows, out=self._losses)
        self._diverged.copy_(diverged)
        self.sums.add_up(self.flat)
        total = self._rows.clamp(min=1)
        torch.div(self._grad, total, out=grad)
        if losses is not None:
            torch.div(self._losses, total, out=losses)
        diverged.logical_or_(self._diverged > 0)
