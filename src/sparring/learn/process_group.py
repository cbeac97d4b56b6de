"""Data-parallel learners: replicas with equal weights, each with its share of the games.

Everything that an update computes from all samples (gradients, statistics of advantages, value
scale, early stopping) is summed over replicas: they make the steps of one learner with all games.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


class ProcessGroup:
    """Sums and statistics over all replicas.

    Subclasses define `rank`, `size`, `sum_` and `totals`; all replicas call these in one order.
    """

    rank = 0
    size = 1
    captures = True
    """Whether a CUDA graph can hold `sum_` of tensors on a GPU."""

    def sum_(self, flat: Tensor) -> None:
        """All-reduce a tensor in place, with the same bits in every replica."""

    def check(self) -> None:
        """Raise `LostError` if sums on a GPU were ended because another replica has ended."""

    def totals(self, values: Sequence[float]) -> list[float]:
        """Return sums over all replicas."""
        return list(values)

    def total(self, value: float) -> float:
        return self.totals([value])[0]

    def any(self, flag: bool) -> bool:
        return self.total(float(flag)) > 0

    def counts(self, count: int) -> list[int]:
        """Return the counts of all replicas, by rank."""
        local = [count if rank == self.rank else 0 for rank in range(self.size)]
        return [int(total) for total in self.totals(local)]

    def mean(self, array: npt.NDArray[Any]) -> float:
        """Return the mean over the arrays of all replicas."""
        total, count = self.totals([float(array.sum(dtype="f8")), len(array)])
        return total / max(count, 1)

    def var(self, array: npt.NDArray[Any]) -> float:
        mean = self.mean(array)
        total, count = self.totals([float(((array - mean) ** 2).sum(dtype="f8")), len(array)])
        return total / max(count, 1)

    def std(self, array: npt.NDArray[Any]) -> float:
        return math.sqrt(self.var(array))


class SingleProcess(ProcessGroup):
    """A group of one process: sums are the values themselves, statistics are numpy's."""

    total: Any = staticmethod(float)
    any: Any = staticmethod(bool)
    mean: Any = staticmethod(np.mean)
    var: Any = staticmethod(np.var)
    std: Any = staticmethod(np.std)


SINGLE = SingleProcess()


def average(
    grads: Sequence[Tensor], losses: Tensor, rows: int, process_group: ProcessGroup
) -> None:
    """Average gradients and losses over replicas, weighted by their numbers of rows.

    One flat tensor holds all of them, so that a step synchronizes once.
    """
    flat = torch.cat([*(grad.reshape(-1) for grad in grads), losses, losses.new_ones(1)]) * rows
    process_group.sum_(flat)
    flat /= flat[-1].clone()
    sizes = [each.numel() for each in (*grads, losses)]
    for each, mean in zip((*grads, losses), torch.split(flat[:-1], sizes), strict=True):
        each.copy_(mean.view_as(each))
