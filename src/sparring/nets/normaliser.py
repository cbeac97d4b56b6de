"""Running normalisation: observations centred and scaled by what was seen so far.

What was seen is part of the network, so that whoever saves, plays or exports it has it too.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

CLIP = 10.0
"""No number lies farther from the mean than so many spreads."""
EPS = 1e-8
"""Beside the variance: a number that never changed is 0 and not 0/0."""
CHUNK = 4096
"""Rows that are widened at a time."""


class Normaliser(nn.Module):
    """Mean, variance and count of every number of the observation, in float64.

    Numbers behind them, those of a memory, pass as they are. Before anything was seen everything
    passes, cut off at `CLIP`.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, numbers: int) -> None:
        """numbers: those of an observation."""
        super().__init__()
        self.numbers = numbers
        self.register_buffer("mean", torch.zeros(numbers, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(numbers, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the same numbers [..., numbers and memory], normalised."""
        shift, spread = self.shift_and_spread()
        seen = ((numbers[..., : self.numbers] - shift) / spread).clamp(-CLIP, CLIP)
        if numbers.shape[-1] == self.numbers:
            return seen
        return torch.cat((seen, numbers[..., self.numbers :]), -1)

    def shift_and_spread(self) -> tuple[Tensor, Tensor]:
        """What is taken off and divided by, in float32."""
        return self.mean.float(), (self.variance + EPS).sqrt().float()

    @torch.no_grad()
    def take_in(self, numbers: Tensor) -> None:
        """Add rows [rows, numbers and memory] to what was seen.

        Two sets are merged by their means and squares (Chan et al.), which loses no digits where a
        mean is far larger than its spread.
        """
        rows = numbers[:, : self.numbers].double()
        if not len(rows):
            return
        mean = rows.mean(0)
        self.merge(float(len(rows)), mean, ((rows - mean) ** 2).sum(0))

    @torch.no_grad()
    def merge(self, count: float, mean: Tensor, squares: Tensor) -> None:
        """Add rows of which only their number, means and squared deviations are known."""
        before = float(self.count)
        total = before + count
        off = mean - self.mean
        kept = self.variance * before  # the variance of nothing is 1, and weighs nothing
        self.variance.copy_((kept + squares + off**2 * (before * count / total)) / total)
        self.mean.add_(off * (count / total))
        self.count.fill_(total)
