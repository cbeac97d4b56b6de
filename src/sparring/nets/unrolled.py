"""Networks that write their own memory, learning from a seat's decisions in a row on a GPU."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sparring.nets.captured import CapturedNet, CapturedPass, Traced
from sparring.nets.net import Heads
from sparring.nets.recurrent import RecurrentNet


class Unrolled(nn.Module):
    """A network that is called for decisions in a row."""

    def __init__(self, net: RecurrentNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, obs: Tensor, fresh: Tensor) -> Heads:
        """See `RecurrentNet.unroll`."""
        return self.net.unroll(obs, fresh)


class UnrolledPass(CapturedPass):
    """Segments of decisions, one after the other: [segments * steps] rows of every member.

    A segment's first row brings its state along, later ones have that of the row before.
    """

    def __init__(self, net: CapturedNet, segments: int, steps: int) -> None:
        super().__init__(net, segments * steps, learn=True)
        self.segments, self.steps = segments, steps
        self.unrolled = Unrolled(cast(RecurrentNet, net.module))
        self.fresh = self.make(1, torch.bool).view(net.members, segments, steps)
        """Where another game begins inside a segment; nothing is remembered there."""

    def read(self, obs: Tensor, places: Tensor | None = None) -> None:
        """Take byte rows, or those at `places`; where it is -1, zeros.

        Zeros have no states that are not finite, such as those of another member that diverged.
        """
        super().read(obs, places)
        if places is not None:
            self.obs.masked_fill_((places < 0).view(len(self.obs), -1, 1), 0)

    def trace(self, member: int) -> Traced:
        """Run the network of a member over its segments."""
        net, obs = self.flat, self.obs[member].view(self.segments, self.steps, -1)
        parameters = net.parameters(member)
        named = {f"net.{name}": tensor for name, tensor in parameters.items()}
        with net.rounding():
            heads: Heads = functional_call(self.unrolled, named, (obs, self.fresh[member]))
        return Traced(parameters, heads)
