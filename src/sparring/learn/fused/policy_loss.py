"""PPO's own loss on a GPU: its gradient at every row of a minibatch, and the means over rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sparring.kernels.views import View
from sparring.learn.fused.images import Images, Minibatch

if TYPE_CHECKING:
    from sparring.learn.fused.update import Update


class PolicyLoss:
    """Launches `loss` of csrc/cuda/ppo.cuh; the formulas are those of `learn.ppo.ppo_loss`."""

    def __init__(self, update: Update, heads: View) -> None:
        """Make room for the losses of an update's minibatches. heads: what its pass says."""
        self.kernels, self.at, self.heads = update.kernels, update.learning, heads
        self.room, self.stride = update.room, update.stride
        self.knobs, self.statistics, self.diverged = (
            update.knobs,
            update.statistics,
            update.diverged,
        )
        rules, members, names = update.rollout.rules, update.members, self.kernels.names("Losses")
        self.block_rows = 256 if rules.box else 8  # a thread has a row, or a warp has it
        self.grid = -(-self.room // self.block_rows), members
        self.moved = slice(names.index("approx_kl"), names.index("clipfrac") + 1)
        """Means that say how far the policy has moved."""
        with torch.device(self.diverged.device):
            self.arrived = torch.zeros(members, dtype=torch.int32)
            self.partials = torch.zeros(members, self.grid[0], len(names))
            self.means = torch.zeros(update.most, members, len(names))

    def write(
        self,
        number: int,
        minibatch: Minibatch,
        images: Sequence[Images],
        counts: Tensor,
        dealt: Mapping[str, int],
    ) -> None:
        """Write gradients and means of a minibatch.

        counts, dealt: samples of every member, and which part of them this is.
        """

        def means_of(places: Tensor) -> Tensor:
            self._launch(number, minibatch.rows, places, counts, dealt)
            return self.means[number]

        # How far the policy has moved is measured on rows as they were played.
        moved = [image.plainly(number, minibatch.places, means_of) for image in images]
        means = means_of(minibatch.places)
        for found in moved:
            means[:, self.moved].copy_(found[:, self.moved])

    def _launch(
        self,
        number: int,
        rows: Mapping[str, Tensor],
        places: Tensor,
        counts: Tensor,
        dealt: Mapping[str, int],
    ) -> None:
        minibatch = self.kernels.view(
            "MinibatchView",
            picked=places,
            **{name: array for name, array in rows.items() if name != "obs"},
            counts=counts,
            **dealt,
            room=self.room,
            stride=self.stride,
        )
        loss = self.kernels.view(
            "LossView",
            knobs=self.knobs,
            statistics=self.statistics,
            rows_per_block=self.block_rows,
            policy_grad=self.at.logits_grad,
            value_grad=self.at.value_grad,
            partials=self.partials,
            arrived=self.arrived,
            means=self.means[number],
            diverged=self.diverged,
        )
        self.kernels.loss(self.grid, 256, self.heads, minibatch, loss)
