"""The magnet on a GPU: `learn.magnet` for all members, inside the graph of an update.

Its weights lie at fixed addresses. They are overwritten between two updates, so that no graph is
captured again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from sparring.config import PPOConfig
from sparring.learn.fused.experience import head_of
from sparring.learn.fused.rollout import FusedRollout, mask_of
from sparring.learn.magnet import MAGNET, MagnetTerm
from sparring.learn.transforms import Mirroring
from sparring.nets.run.flat import FlatNet
from sparring.schedule import Moment

AT_ONCE = 16384
"""Most rows of a pass, per member."""


class FusedMagnet:
    """The magnets of one network of all members; they run once per update on all rows."""

    def __init__(
        self,
        policy: FlatNet,
        net: FlatNet,
        rollout: FusedRollout,
        configs: Sequence[PPOConfig],
        mirrors: Sequence[Mirroring] = (),
    ) -> None:
        """Begin without copies.

        policy: the network that learns. net: another one like it, for the magnets.
        configs: settings of all members; they may change. mirrors: of the learner.
        """
        self.term = MagnetTerm(rollout.rules, configs[0], mirrors)
        self.policy, self.net, self.rollout, self.configs = policy, net, rollout, configs
        self.copied_at: list[int | None] = [None] * net.members
        """Update of every member's last copy."""
        self.places = places_by_member(rollout, AT_ONCE)
        self.passing = net.make_pass(self.places.shape[2], learn=False)
        width = head_of(self.passing).shape[2]
        with torch.device(net.device):
            self.copies = torch.zeros(net.members, 1, 1)
            """By member, 1 if the magnet is a copy, 0 if it is uniform."""
            column = torch.zeros(rollout.places, width, dtype=self.term.dtype)
        self.by_place: Mapping[str, Tensor] = {MAGNET: column}

    def follow(self, update: int, moments: Sequence[Moment]) -> None:
        """Copy the policies of members for which it is time, before an update."""
        periods = []
        for member, moment in enumerate(moments):
            self._set(member, moment)
            periods.append(self.term.period)
            if self.term.is_due(update, self.copied_at[member]):
                self.net.copy_from(self.policy, slice(member, member + 1))
                self.copied_at[member] = update
        self.copies.copy_(torch.tensor(periods).clamp(max=1).view(self.copies.shape))

    def weights(self, moments: Sequence[Moment]) -> list[float]:
        """Return the weight of every member."""
        found = []
        for member, moment in enumerate(moments):
            self._set(member, moment)
            found.append(self.term.weight)
        return found

    def _set(self, member: int, moment: Moment) -> None:
        self.term.settings = self.configs[member]
        self.term.set_weight(moment)

    @torch.no_grad()
    def fill(self) -> None:
        """Compute the column of every place."""
        rollout = self.rollout
        for places in self.places:
            self.passing.read(rollout.obs, places)
            self.passing.forward()
            at = places.reshape(-1).long()
            head = (head_of(self.passing) * self.copies).flatten(0, 1)
            stored = self.term.stored(head, mask_of(rollout.legal[at], rollout.rules))
            self.by_place[MAGNET].index_copy_(0, at, stored)

    def state(self, member: int) -> tuple[dict[str, Tensor], int | None]:
        """Copy a member's weights; none if it never had any. With them: the update of the copy."""
        copied_at = self.copied_at[member]
        return ({} if copied_at is None else self.net.state(member)), copied_at

    def load(self, member: int, tensors: Mapping[str, Tensor], copied_at: int | None) -> None:
        """Restore a member's `state`."""
        self.copied_at[member] = copied_at if tensors else None
        if tensors:
            self.net.load(member, tensors)


def places_by_member(rollout: FusedRollout, most: int) -> Tensor:
    """Return the places of every member in passes of equal size [passes, members, rows].

    The last pass repeats a place where it has room left.
    """
    members, pending = rollout.members, rollout.max_pending
    place = torch.arange(rollout.places, device=rollout.end.device, dtype=torch.int32)
    front = place[:pending].view(members, -1)
    steps = place[pending:].view(rollout.steps, members, -1).transpose(0, 1).flatten(1)
    mine = torch.cat([front, steps], 1)
    passes = -(-mine.shape[1] // most)
    rows = -(-mine.shape[1] // passes)
    index = torch.arange(passes * rows, device=mine.device).clamp(max=mine.shape[1] - 1)
    return mine[:, index].view(members, passes, rows).transpose(0, 1).contiguous()
