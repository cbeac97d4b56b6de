"""Learners that share the work of every update and learn as one.

Each has games of its own, and the same weights. What an update computes from all samples - the
gradient, the statistics of advantages, the unit of values, whether to stop - is summed over them,
so that all make the same steps as one learner with all the games would.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


class Together:
    """Others that learn as one with this learner: their sums, and what follows from sums.

    A kind has `rank`, `size`, `sum_` and `totals`; all learners call these in the same order.
    """

    rank = 0
    """Which of them this is."""
    size = 1
    """How many there are."""

    def sum_(self, flat: Tensor) -> None:
        """Make a tensor the sum of all learners' tensors, the same bits in each."""

    def totals(self, values: Sequence[float]) -> list[float]:
        """Return sums over all learners."""
        return list(values)

    def total(self, value: float) -> float:
        """Sum one number."""
        return self.totals([value])[0]

    def any(self, flag: bool) -> bool:
        """Whether it is so in any of them."""
        return self.total(float(flag)) > 0

    def counts(self, count: int) -> list[int]:
        """Return everybody's count, by rank."""
        own = [count if rank == self.rank else 0 for rank in range(self.size)]
        return [int(total) for total in self.totals(own)]

    def mean(self, array: npt.NDArray[Any]) -> float:
        """Return the mean over everybody's numbers."""
        total, count = self.totals([float(array.sum(dtype="f8")), len(array)])
        return total / max(count, 1)

    def var(self, array: npt.NDArray[Any]) -> float:
        """Return their variance."""
        middle = self.mean(array)
        total, count = self.totals([float(((array - middle) ** 2).sum(dtype="f8")), len(array)])
        return total / max(count, 1)

    def std(self, array: npt.NDArray[Any]) -> float:
        """Return their standard deviation."""
        return math.sqrt(self.var(array))


class Alone(Together):
    """Nobody else learns: every sum is its own, and statistics are numpy's."""

    total: Any = staticmethod(float)
    any: Any = staticmethod(bool)
    mean: Any = staticmethod(np.mean)
    var: Any = staticmethod(np.var)
    std: Any = staticmethod(np.std)


ALONE = Alone()


def average(grads: Sequence[Tensor], losses: Tensor, rows: int, together: Together) -> None:
    """Make gradients and losses those of everybody's rows: means, by how many rows each has.

    All of it goes as one flat tensor, so that a step waits for the others once.
    """
    flat = torch.cat([*(grad.reshape(-1) for grad in grads), losses, losses.new_ones(1)]) * rows
    together.sum_(flat)
    flat /= flat[-1].clone()
    sizes = [each.numel() for each in (*grads, losses)]
    for each, mean in zip((*grads, losses), torch.split(flat[:-1], sizes), strict=True):
        each.copy_(mean.view_as(each))
