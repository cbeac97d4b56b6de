"""Averages of the weights of all members on a GPU: `learn.averaging` for flat arrays."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from sparring.learn.averaging import average_step
from sparring.nets.run.flat import FlatNet
from sparring.nets.run.make_flat import FlatHierarchy


class FusedAverage:
    """The average weights of every member, as networks that nothing else runs."""

    def __init__(self, nets: FlatNet | FlatHierarchy, share: float, members: int) -> None:
        """Begin with weights that `load` sets. share: of the training that is averaged."""
        self.nets, self.share, self.made = nets, share, [0] * members

    def add(self, member: int, net: FlatNet | FlatHierarchy, made: int) -> None:
        """Take a member's weights after an update. made: its decisions since the run began."""
        step, self.made[member] = average_step(self.share, self.made[member], made), made
        self.nets.average_from(net, member, step)

    def state(self, member: int) -> dict[str, Tensor]:
        """Return the state dict of a member's average."""
        return self.nets.state(member)

    def load(self, member: int, state: Mapping[str, Tensor], made: int = 0) -> None:
        """Restore a member's average after so many decisions."""
        self.nets.load(member, state)
        self.made[member] = made
