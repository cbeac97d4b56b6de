"""Counters of games on a GPU, by member."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.games.rules import Rules

REPLICAS = 64
"""Copies of the counters, so that blocks seldom wait for each other."""


class CountsOnDevice:
    """The learner's counters of a GPU pool."""

    count_array: Tensor
    """[members, replicas, counters]; `counted` sums the replicas."""

    def _make_counts(
        self, rules: Rules, members: int, device: torch.device, *, on: bool
    ) -> dict[str, Any]:
        """Allocate them; return the fields of `GamesView` in csrc/cuda/pool.cuh."""
        size = (members, REPLICAS, len(rules.counters))
        self.count_array = torch.zeros(size, dtype=torch.int64, device=device)
        counts = on and self.count_array.numel() > 0
        return {"counts": self.count_array if counts else None, "replicas": REPLICAS}

    def counted(self) -> Tensor:
        """Counters since `clear_counts` [members, counters]; may be captured in a graph."""
        return self.count_array.sum(1)

    def counts(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Return the counters at the learner's seats, by `rules.counters`."""
        return self.count_array[member].sum(0).cpu().numpy()

    def clear_counts(self) -> None:
        """Set all counters to 0."""
        self.count_array.zero_()
