"""What games on a GPU count, member by member."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.games.rules import Rules

REPLICAS = 64
"""Blocks add to different copies of the counters, so that they seldom wait for each other."""


class CountsOnDevice:
    """The learner's counters of a pool whose games are on a GPU."""

    count_array: Tensor
    """[members, replicas, counters]: what was counted is their sum, see `counted`."""

    def _make_counts(
        self, rules: Rules, members: int, device: torch.device, *, on: bool
    ) -> dict[str, Any]:
        """Make them; return where kernels add, as `GamesView` of csrc/cuda/pool.cuh has it."""
        size = (members, REPLICAS, len(rules.counters))
        self.count_array = torch.zeros(size, dtype=torch.int64, device=device)
        counts = on and self.count_array.numel() > 0
        return {"counts": self.count_array if counts else None, "replicas": REPLICAS}

    def counted(self) -> Tensor:
        """Sum what was counted since `clear_counts` [members, counters]; may be part of a graph."""
        return self.count_array.sum(1)

    def counts(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Return what was counted at the learner's seats, by `rules.counters`."""
        return self.count_array[member].sum(0).cpu().numpy()

    def clear_counts(self) -> None:
        """Count from 0 again."""
        self.count_array.zero_()
