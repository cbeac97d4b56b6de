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
from torch import Tensor


class Together:
    """What one learner knows of the others: here there are none, and every sum is its own.

    Whoever has others overrides `rank`, `size`, `sum_` and `totals`; all of them call these in the
    same order.
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

    # What follows from sums

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
        if self.size == 1:
            return float(array.mean())
        total, count = self.totals([float(array.sum(dtype="f8")), len(array)])
        return total / max(count, 1)

    @np.errstate(over="ignore", invalid="ignore")  # who asks looks whether it is finite
    def variance(self, array: npt.NDArray[Any]) -> float:
        """Return their variance."""
        if self.size == 1:
            return float(array.var())
        middle = self.mean(array)
        total, count = self.totals([float(((array - middle) ** 2).sum(dtype="f8")), len(array)])
        return total / max(count, 1)

    def spread(self, array: npt.NDArray[Any]) -> float:
        """Return their standard deviation."""
        return float(array.std()) if self.size == 1 else math.sqrt(self.variance(array))


ALONE = Together()
