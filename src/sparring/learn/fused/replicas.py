"""Replicas on GPUs: what an update computes from all samples is summed, see `learn.process_group`.

Sums are part of the update's graph where the process group can be captured. Otherwise the graph is
split there, and the host sums. tests/learn/test_fused_replicas.py compares means with those of one
learner, tests/cuda/test_devices.py whole updates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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

    def any_of(self, flags: Tensor) -> None:
        """Set flags [members] that are set in any replica."""
        self.add_up(flags)
        flags.clamp_(max=1)

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


class MinibatchMeans:
    """Means of gradients and losses over the samples of a minibatch in all replicas."""

    def __init__(self, sums: ReplicaSums, minibatches: int, members: int, like: Tensor) -> None:
        """minibatches: of an epoch, at most. like: a tensor on the device."""
        self.sums = sums
        self.share, self.total = like.new_zeros(2, minibatches, members)
        """Samples of each minibatch here divided by those of all replicas, and the latter."""

    def count(self, picked: Tensor) -> None:
        """Count the samples of an epoch. picked: places [minibatches, members, room], or -1."""
        share, total = self.share[: len(picked)], self.total[: len(picked)]
        share.copy_((picked >= 0).sum(2))
        total.copy_(share)
        self.sums.add_up(total)
        share.div_(total.clamp(min=1))

    def of_gradient(self, number: int, grad: Tensor) -> None:
        """Replace the gradient of a minibatch [members, size] by that of all replicas."""
        grad.mul_(self.share[number][:, None])
        self.sums.add_up(grad)

    def of_losses(self, losses: Tensor) -> None:
        """Replace the losses of an epoch [minibatches, members, losses] by those of all."""
        losses.mul_(self.share[: len(losses), :, None])
        self.sums.add_up(losses)
