"""Segments of consecutive decisions on a GPU, for recurrent networks.

The complete decisions of one (game, seat), sorted by time, are cut every `net.bptt_steps`. This is
index arithmetic of fixed shapes in torch, so that a graph can hold it and tests can run it on a
CPU. The kernel that shuffles samples shuffles segments too.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sparring.kernels import KernelModule
from sparring.learn.fused.rollout import FusedRollout
from sparring.learn.transitions import NOT_A_SAMPLE, TO_NEXT
from sparring.nets.run.captured import CapturedNet, UnrolledPass
from sparring.nets.run.flat import FlatNet

PADDING = -1
"""Index of padding, after the end of a segment or of a minibatch."""


@dataclass(frozen=True)
class Cut:
    """Sizes of the segments of a rollout."""

    members: int
    seats: int
    """Seats of all games of a member."""
    steps: int
    """Steps of the rollout; a seat has at most one decision in each, and a pending one."""
    places: int
    """Places of a member: pending transitions and rows."""
    length: int
    """Maximum decisions of a segment."""

    @classmethod
    def of(cls, rollout: FusedRollout, segment: int) -> Cut:
        """Return the sizes for a rollout. segment: `net.bptt_steps`."""
        members, length = rollout.members, min(segment, rollout.steps + 1)
        seats = rollout.games * rollout.rules.seats // members
        return cls(members, seats, rollout.steps, rollout.places // members, length)

    @property
    def most(self) -> int:
        """Maximum segments of a member: all but the last of each seat are full."""
        of_a_seat = -(-(self.steps + 1) // self.length)
        full_or_last = (self.places + self.seats * (self.length - 1)) // self.length
        return min(self.seats * of_a_seat, full_or_last)

    def room(self, minibatches: int) -> int:
        """Segments per minibatch, so that all fit into so many minibatches."""
        return -(-self.most // minibatches)


def in_a_row(rollout: FusedRollout) -> Tensor:
    """Return the places of samples by (game, seat) and time [games * seats, 1 + steps], -1: none.

    Pending transitions come first.
    """
    rules, times, device = rollout.rules, rollout.steps + 1, rollout.end.device
    owners = rollout.games * rules.seats
    game = torch.arange(rollout.rows, device=device) // rules.rows
    owner = game * rules.seats + rollout.seat
    time = torch.arange(1, times, device=device)[:, None]
    brought = torch.arange(owners, device=device) * times
    at = torch.cat((brought, (owner * times + time).view(-1)))
    nowhere = owners * times
    at = torch.where(rollout.end != NOT_A_SAMPLE, at, nowhere)
    found = torch.full((nowhere + 1,), PADDING, dtype=torch.int32, device=device)
    found.scatter_(0, at, torch.arange(rollout.places, dtype=torch.int32, device=device))
    return found[:nowhere].view(owners, times)


def segments_of(by_time: Tensor, cut: Cut) -> tuple[Tensor, Tensor]:
    """Return the places of every segment [members, most, length], and their number.

    by_time: see `in_a_row`. The counts are int32 [members].
    """
    members, length, most = cut.members, cut.length, cut.most
    taken = by_time >= 0
    number = torch.cumsum(taken, 1, dtype=torch.int32) - 1
    each = ((number[:, -1] + length) // length).view(members, cut.seats)
    ends = torch.cumsum(each, 1)
    member = torch.arange(members, device=by_time.device)[:, None]
    first = (member * most + ends - each).view(-1, 1)
    nowhere = members * most * length
    at = torch.where(taken, first * length + number, nowhere)
    found = torch.full((nowhere + 1,), PADDING, dtype=torch.int32, device=by_time.device)
    found.scatter_(0, at.view(-1), by_time.reshape(-1))
    return found[:nowhere].view(members, most, length), ends[:, -1].to(torch.int32)


def fresh_in(places: Tensor, end: Tensor, following: Tensor) -> Tensor:
    """Return where the hidden state is reset within segments, because another game begins.

    places: [..., length]. end, following: by place, `end` and `next` of the rollout.
    """
    before = places[..., :-1].clamp(min=0).long()
    follows = (end[before] == TO_NEXT) & (following[before] == places[..., 1:])
    fresh = torch.ones_like(places, dtype=torch.bool)
    fresh[..., 1:] = ~follows
    return fresh


def spread(dealt: Tensor, table: Tensor) -> Tensor:
    """Return the places of the segments of minibatches [..., members, room, length].

    dealt: [..., members, room], the number of a segment, or -1. table: [members, most, length].
    """
    members, most, length = table.shape
    first = torch.arange(members, device=table.device)[:, None] * most
    at = dealt.clamp(min=0) + first
    found = table.view(-1, length).index_select(0, at.view(-1)).view(*dealt.shape, length)
    if table.dtype == torch.bool:
        return found
    return torch.where(dealt[..., None] >= 0, found, PADDING)


class Sequences:
    """The segments of a rollout, and those of every minibatch."""

    def __init__(
        self,
        kernels: KernelModule,
        net: FlatNet,
        rollout: FusedRollout,
        *,
        minibatches: int,
    ) -> None:
        """Allocate the arrays. minibatches: maximum number."""
        assert rollout.chains == 1 and isinstance(net, CapturedNet), "the plan refuses"
        self.rollout, self.cut = rollout, Cut.of(rollout, net.config.bptt_steps)
        members, length, most = rollout.members, self.cut.length, self.cut.most
        self.room = self.cut.room(minibatches)
        """Segments of a minibatch."""
        self.rows = self.room * length
        """Rows of a minibatch, with padding."""
        self.learning = UnrolledPass(net, self.room, length)
        with torch.device(rollout.end.device):
            self.table = torch.zeros(members, most, length, dtype=torch.int32)
            self.fresh = torch.zeros(members, most, length, dtype=torch.bool)
            self.counts = torch.zeros(members, dtype=torch.int32)
            """Segments of each member."""
            self.dealt = torch.zeros(minibatches, members, self.room, dtype=torch.int32)
            self.dealt_fresh = torch.zeros(
                minibatches, members, self.room, length, dtype=torch.bool
            )
            self.filled = torch.zeros(minibatches, members, dtype=torch.int32)
            """Samples of each minibatch."""
            numbers = torch.arange(most, dtype=torch.int32).repeat(members, 1)
        self.list = kernels.view("SampleListView", list=numbers, stride=most, counts=self.counts)
        """All segments, as an argument of the shuffle kernel."""

    def find(self) -> None:
        """Cut the decisions of a linked rollout into segments."""
        rollout = self.rollout
        table, counts = segments_of(in_a_row(rollout), self.cut)
        self.table.copy_(table)
        self.counts.copy_(counts)
        self.fresh.copy_(fresh_in(table, rollout.end, rollout.next))

    def spread(self, picked: Tensor) -> None:
        """Write the places of the shuffled segments [minibatches, members, rows]."""
        count = len(picked)
        dealt = self.dealt[:count]
        places = spread(dealt, self.table)
        picked.copy_(places.view(picked.shape))
        self.dealt_fresh[:count].copy_(spread(dealt, self.fresh))
        self.filled[:count].copy_((places >= 0).sum((2, 3)))

    def bring(self, number: int) -> None:
        """Copy the resets of a minibatch to the pass."""
        self.learning.fresh.copy_(self.dealt_fresh[number])

    def minibatches(self, wanted: int) -> int:
        """Return the number of minibatches: at least `wanted`, and enough for all segments."""
        return max(wanted, -(-int(self.counts.max()) // self.room))
