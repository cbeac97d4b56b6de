"""Average of a network's weights over the last part of a training, which plays in their place.

With a constant step self-play circles around the policy that it approaches; the average of its
weights lies nearer (Polyak and Juditsky, 1992). Each update moves the average toward the new
weights by d / (share * t), for d decisions of the update and t since the run began: it follows the
last `share` of the training, however long that is.

Policies, evaluations, past selves and exports have the average. The learner goes on from the new
weights, which snapshots hold as the group `TRAINED`.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from sparring.learn.learner import Snapshot
from sparring.nets.net import Net

TRAINED = "trained"
"""Group of the weights that training goes on from, if the group "net" is their average."""


def average_step(share: float, before: int, made: int) -> float:
    """Return how far an update moves the average. before, made: decisions before and after it."""
    return min((made - before) / (share * made), 1.0) if made > before else 0.0


def trained_weights(tensors: Mapping[str, Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """Return the weights in a snapshot's tensors that training goes on from."""
    return tensors.get(TRAINED, tensors["net"])


class WeightAverage:
    """The average of one network on the host. `learn.fused.playing` has that of GPUs."""

    def __init__(self, net: Net, share: float) -> None:
        """Begin with the network's weights. share: of the training that is averaged."""
        self.net, self.share, self.made = net, share, 0
        self.weights = {name: value.detach().clone() for name, value in net.state_dict().items()}

    @torch.no_grad()
    def add(self, made: int) -> None:
        """Take the weights after an update. made: decisions since the run began."""
        step, self.made = average_step(self.share, self.made, made), made
        for name, value in self.net.state_dict().items():
            if value.is_floating_point():
                self.weights[name].lerp_(value, step)
            elif step:
                self.weights[name].copy_(value)

    def tensors(self) -> dict[str, Tensor]:
        """Copy the average to the CPU."""
        return {name: value.cpu().clone() for name, value in self.weights.items()}

    def load(self, snapshot: Snapshot) -> None:
        self.made = int(snapshot.meta["decisions"])
        for name, value in snapshot.tensors["net"].items():
            self.weights[name].copy_(value)
