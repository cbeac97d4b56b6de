"""PPO's own loss on a GPU: its gradient at every row of a minibatch, and the means over rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from sparring.kernels import Module
from sparring.learn.fused.images import Images, Minibatch
from sparring.learn.fused.kernels import heads_view
from sparring.learn.fused.minibatches import Samples
from sparring.nets.run.flat import Pass


class PolicyLoss:
    """Launches `loss` of csrc/cuda/ppo.cuh; the formulas are those of `learn.ppo.ppo_loss`."""

    def __init__(
        self,
        kernels: Module,
        at: Pass,
        samples: Samples,
        *,
        knobs: Tensor,
        statistics: Tensor,
        diverged: Tensor,
    ) -> None:
        """Make room for the losses of all minibatches.

        at: the pass that goes back from them. diverged: is told who has a loss that is not finite.
        """
        self.kernels, self.at, self.heads = kernels, at, heads_view(kernels, at.flat, at)
        self.knobs, self.statistics, self.diverged = knobs, statistics, diverged
        minibatches, members, self.stride = samples.picked.shape
        self.room, rules, names = samples.room, at.flat.rules, kernels.names("Losses")
        self.block_rows = 256 if rules.box else 8  # a thread has a row, or a warp has it
        self.grid = -(-self.room // self.block_rows), members
        self.moved = slice(names.index("approx_kl"), names.index("clipfrac") + 1)
        """Means that say how far the policy has moved."""
        with torch.device(diverged.device):
            self.arrived = torch.zeros(members, dtype=torch.int32)
            self.partials = torch.zeros(members, self.grid[0], len(names))
            self.means = torch.zeros(minibatches, members, len(names))

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
