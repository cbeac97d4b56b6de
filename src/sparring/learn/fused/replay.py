"""Replay buffers on a GPU, one per member, without synchronization.

`learn.replay.ReplayBuffer` is the counterpart on the host; a test compares contents and samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring import _native
from sparring.config import ReplayConfig
from sparring.games.rules import Rules
from sparring.kernels import KernelModule
from sparring.kernels.views import KernelView
from sparring.learn.fused.kernels import blocks_of
from sparring.learn.fused.rollout import FusedRollout, links_view, mask_of
from sparring.learn.learner import Segment
from sparring.learn.ring import (
    Segments,
    check_capacity,
    check_pending_serials,
    columns_of,
    mask_words,
    tensors_of,
)
from sparring.learn.transforms import Mirroring
from sparring.nets.run.flat import Pass
from sparring.pools.lineups import LEARNER


class DeviceColumn:
    """One column; reading copies rows to the host in the dtypes of `learn.ring.RingBuffer`."""

    def __init__(self, tensor: Tensor, kind: Any) -> None:
        self.tensor, self.dtype = tensor, np.dtype(kind)
        self.shape = tuple(tensor.shape)

    def __getitem__(self, at: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        places = torch.from_numpy(at).to(self.tensor.device)
        return as_kind(self.tensor[places].cpu().numpy(), self.dtype)

    def write(self, at: npt.NDArray[np.int64], rows: npt.NDArray[Any]) -> None:
        """Write rows at these places."""
        kind = np.dtype(str(self.tensor.dtype).removeprefix("torch."))
        places = torch.from_numpy(at).to(self.tensor.device)
        values = torch.from_numpy(np.ascontiguousarray(as_kind(rows, kind)))
        self.tensor[places] = values.to(self.tensor.device)


class MemberRing:
    """The columns of one member, for `learn.ring.Segments`."""

    def __init__(self, rules: Rules, capacity: int, columns: Mapping[str, Tensor]) -> None:
        """Name the columns as `learn.ring.RingBuffer` does; each has one row per place."""
        self.capacity = capacity
        kinds = columns_of(rules, columns["obs"].shape[1])
        self.columns = {
            name: DeviceColumn(columns[name], kind) for name, (kind, _) in kinds.items()
        }

    def __getitem__(self, name: str) -> DeviceColumn:
        return self.columns[name]

    def write(self, first: int, rows: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write rows at serial numbers from `first` on."""
        for name, values in rows.items():
            at = np.arange(first, first + len(values)) % self.capacity
            self.columns[name].write(at, values)


def as_kind(array: npt.NDArray[Any], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Convert the dtype; integers of equal size keep their bits."""
    return array.view(kind) if array.itemsize == kind.itemsize else array.astype(kind)


class DeviceReplay:
    """The rings of all members, and the current batch of each."""

    def __init__(
        self,
        kernels: KernelModule,
        rollout: FusedRollout,
        config: ReplayConfig,
        seeds: Tensor,
        *,
        mirrors: Sequence[Mirroring] = (),
    ) -> None:
        """Allocate the rings. seeds: of the members. mirrors: data augmentation."""
        self.mirrors = mirrors
        self.kernels, self.rollout, self.config, self.seeds = kernels, rollout, config, seeds
        rules, members, capacity = rollout.rules, rollout.members, config.capacity
        check_capacity(capacity, (rollout.steps * rollout.rows) // members)
        self.members, places = members, members * capacity
        finals = rollout.final_value.shape
        row_bytes, words = rollout.obs.shape[1], rules.legal_words
        items = rollout.steps * (rollout.rows + rollout.games * rules.seats) // members
        with torch.device(rollout.obs.device):
            self.obs = torch.zeros(places, row_bytes, dtype=torch.uint8)
            self.legal = torch.zeros(places, words, dtype=torch.int64)
            self.action = torch.zeros(places, dtype=torch.int32)
            if rules.box:  # as games got them
                self.action = torch.zeros(places, rules.box)
            self.paid, self.discount = torch.zeros(places), torch.zeros(places)
            self.next = torch.zeros(places, dtype=torch.int32)
            self.end = torch.zeros(places, dtype=torch.uint8)
            self.heads = torch.zeros(members, dtype=torch.int64)
            """Next serial number of each member."""
            self.firsts = torch.zeros(members, dtype=torch.int64)
            """Oldest serial number of each member."""
            self.serial = torch.full((rollout.places,), -1, dtype=torch.int64)
            """Serial numbers by place of the rollout."""
            self._stands_for = torch.zeros(finals, dtype=torch.int32)
            self._last_row = torch.zeros(finals, dtype=torch.int32)
            self._last_serial = torch.zeros(finals, dtype=torch.int64)
            self._marks = torch.zeros(members, items, dtype=torch.int32)
            # The current batch.
            shape = members, config.batch
            self.number = torch.zeros(members, dtype=torch.int32)
            """Index of every member's optimizer step."""
            self.stopped = torch.zeros(members, dtype=torch.uint8)
            """Members that make no step now."""
            self.picked = torch.zeros(shape, dtype=torch.int32)
            self.after = torch.zeros(shape, dtype=torch.int32)
            self.batch_paid, self.batch_discount = torch.zeros(shape), torch.zeros(shape)
            self.weight = torch.ones(shape)
            self.coin = torch.zeros(shape, dtype=torch.uint8)
            """Samples that are mirrored."""
            # Priorities as integers.
            leaves = capacity if config.prioritized else 0
            self.leaf = torch.zeros(members, leaves, dtype=torch.int32)
            nodes = _native.tree_sums(capacity) if leaves else 0
            self._sums = torch.zeros(members, nodes, dtype=torch.int64)
            self.highest = torch.full((members,), _native.WEIGHT_OF_ONE, dtype=torch.int32)
            self._lowest = torch.zeros(members, dtype=torch.int32)
            self.correction = torch.ones(members)
        self._segments = [Segments(self._ring_of(member)) for member in range(members)]
        self._make_views()

    def _make_views(self) -> None:
        view, rollout = self.kernels.view, self.rollout
        members, rules = self.members, rollout.rules
        names = ("obs", "legal", "action", "discount", "next", "end", "heads")
        self._rings = view(
            "RingsView",
            capacity=self.config.capacity,
            row_bytes=self.obs.shape[1],
            reward=self.paid,
            **{name: getattr(self, name) for name in names},
        )
        last = view(
            "LastRowsView",
            stands_for=self._stands_for,
            row=self._last_row,
            serial=self._last_serial,
        )
        kept = ("seat", "policy", "obs", "legal", "action", "cut_obs", "cut_at", "cut_count")
        self._remember = view(
            "StoreView",
            members=members,
            rows_each=rollout.rows // members,
            steps=rollout.steps,
            layers=len(rollout.cut_at),
            rows_per_game=rules.rows,
            games_each=rollout.games // members,
            seats=rules.seats,
            pending_count=rollout.max_pending,
            learner=LEARNER,
            squash=int(rollout.squash),
            **{name: getattr(rollout, name) for name in kept},
            final_legal=rollout.final_legal,
            final_value=rollout.final_value,
            last=last,
            serial=self.serial,
            marks=self._marks,
        )
        prioritized = self.config.prioritized
        self._priorities = view(
            "PrioritiesView",
            leaves=self.config.capacity,
            sums_each=self._sums.shape[1],
            leaf=self.leaf if prioritized else None,
            sums=self._sums,
            highest=self.highest,
            lowest=self._lowest,
        )
        self._drawn = view(
            "DrawView",
            members=members,
            batch=self.config.batch,
            n_step=self.config.n_step,
            seeds=self.seeds,
            number=self.number,
            stopped=self.stopped,
            firsts=self.firsts,
            picked=self.picked,
            after=self.after,
            reward=self.batch_paid,
            discount=self.batch_discount,
        )
        self.links = links_view(self.kernels, rollout)

    def push(self, link: Callable[[], None]) -> None:
        """Take over a rollout, before its open decisions are carried.

        link: links its rows, once it is known which cut games have a last row.
        """
        kernels, rollout, marks = self.kernels, self.rollout, self._marks
        places = rollout.places
        self._stands_for.fill_(-1)
        kernels.note_truncations(blocks_of(rollout.cut_at.numel()), 256, self._remember)
        link()
        marks.zero_()
        kernels.mark_rows(blocks_of(rollout.steps * rollout.rows), 256, self._remember)
        by_place = blocks_of(places)
        kernels.mark_last_rows(by_place, 256, self._remember, self.links, places)
        marks.cumsum_(1)
        kernels.store_rows(blocks_of(marks.numel(), 8), 256, *self._into)
        self.heads.add_(marks[:, -1])
        torch.maximum(self.firsts, self.heads - self.config.capacity, out=self.firsts)
        kernels.store_links(by_place, 256, *self._into, self.links, places)
        self.sum_up()
        kernels.move_pending_serials(
            blocks_of(rollout.max_pending), 256, rollout.open, rollout.max_pending, self.serial
        )

    @property
    def _into(self) -> tuple[KernelView, KernelView, KernelView]:
        return self._remember, self._rings, self._priorities

    def draw(self) -> None:
        """Draw a batch of every member; the same for the same contents and number."""
        kernels, blocks = self.kernels, blocks_of(self.picked.numel())
        priorities, drawn = self._priorities, self._drawn
        kernels.draw_samples(blocks, 256, self._rings, priorities, drawn)
        if self.config.prioritized:
            self._lowest.fill_(-1)  # all bits: the highest number
            kernels.find_lowest(blocks, 256, priorities, drawn)
            kernels.compute_importance(blocks, 256, priorities, drawn, self.correction, self.weight)
        if self.mirrors:
            kernels.draw_mirrors(blocks, 256, drawn, self.coin)

    def reprioritize(self, error: Tensor) -> None:
        """Say how wrong the estimates of the batch were [members, batch]."""
        if not self.config.prioritized:
            return
        kernels, blocks = self.kernels, blocks_of(self.picked.numel())
        kernels.clear_priorities(blocks, 256, self._priorities, self._drawn)
        exponent = self.config.priority_exponent
        errors = error.float().contiguous()
        kernels.update_priorities(blocks, 256, self._priorities, self._drawn, errors, exponent)
        self.sum_up()

    def weights(self) -> list[Tensor]:
        """What priorities are made of, by member; nothing where there are none."""
        return [self.leaf, self.highest] if self.config.prioritized else []

    def sum_up(self) -> None:
        """Sum all trees anew; with a GPU that is cheaper than finding out which nodes changed."""
        if not self.config.prioritized:
            return
        nodes, level = self.config.capacity, 0
        while nodes > 1 or not level:
            nodes, level = -(-nodes // _native.TREE_FAN), level + 1
            self.kernels.sum_level(
                blocks_of(self.members * nodes), 256, self._priorities, self.members, level
            )

    def read(self, into: Pass, places: Tensor) -> None:
        """Have a pass look at the rows at these places [members, batch]."""
        if self.mirrors:
            into.read(self.rows(places).view(places.numel(), -1))
        else:
            into.read(self.obs, places)

    def rows(self, places: Tensor) -> Tensor:
        """The byte rows at these places [members, batch, row_bytes]."""
        rows = self.obs.index_select(0, places.view(-1))
        for mirror in self.mirrors:
            rows = mirror.rows(rows, self.coin.view(-1))
        return rows.view(*places.shape, -1)

    def masks(self, places: Tensor) -> Tensor:
        """Which actions are legal there [members, batch, actions], bytes."""
        masks = mask_of(self.legal.index_select(0, places.view(-1)), self.rollout.rules)
        for mirror in self.mirrors:
            masks = mirror.masks(masks, self.coin.view(-1))
        return masks.view(*places.shape, -1)

    def actions(self) -> Tensor:
        """Those that were taken, [members, batch] or [members, batch, box]."""
        actions = self.action.index_select(0, self.picked.view(-1))
        for mirror in self.mirrors:
            actions = mirror.actions(actions, self.coin.view(-1))
        return actions.view(*self.picked.shape, *self.action.shape[1:])

    def figures(self) -> dict[str, Tensor]:
        """What can be sampled, and what is kept, by member."""
        return {
            "sampleable": (self.end.view(self.members, -1) != 0).sum(1),
            "kept": self.heads - self.firsts,
        }

    def noise(self, numbers: int, out: Tensor) -> None:
        """Standard normal numbers for every sample [members, batch, numbers]."""
        self.kernels.draw_noise(
            blocks_of(self.picked.numel()),
            256,
            *(self.seeds, self.number, self.members, self.config.batch, numbers, out),
        )

    def clear(self, member: int) -> None:
        """Forget everything of a member. Serial numbers go on, so that none means two things."""
        self._ring_of(member).columns["end"].tensor.zero_()
        self.serial[self._pending_of(member)] = -1
        self.firsts[member] = self.heads[member]
        if self.config.prioritized:
            self.leaf[member] = 0
            self.sum_up()

    # Saving, in the layout of `learn.replay.Replay.state`

    def _ring_of(self, member: int) -> MemberRing:
        first, capacity = member * self.config.capacity, self.config.capacity
        rules, rows = self.rollout.rules, slice(first, first + capacity)
        names = ("obs", "action", "next", "end", "paid", "discount")
        columns = {name: getattr(self, name)[rows] for name in names}
        columns["mask"] = self.legal[rows, : mask_words(rules.actions)]
        return MemberRing(rules, capacity, columns)

    def _pending_of(self, member: int) -> slice:
        each = self.rollout.max_pending // self.members
        return slice(member * each, (member + 1) * each)

    def state(self, member: int) -> tuple[dict[str, Tensor], dict[str, Segment], dict[str, int]]:
        """Return what is still changing, sealed segments by name, and counts."""
        first, head = int(self.firsts[member]), int(self.heads[member])
        pending = self.serial[self._pending_of(member)].cpu().numpy()
        columns, readers = self._segments[member].save(first, head, pending)
        columns["open"] = pending
        if self.config.prioritized:
            at = torch.arange(first, head, device=self.leaf.device) % self.config.capacity
            columns["weight"] = self.leaf[member, at].cpu().numpy().view(np.uint32)
        highest = int(self.highest[member]) % 2**32
        return tensors_of(columns), readers, {"first": first, "head": head, "highest": highest}

    def load_state(
        self,
        member: int,
        tensors: Mapping[str, Tensor],
        segments: Mapping[str, Mapping[str, Tensor]],
        meta: Mapping[str, int],
    ) -> None:
        """Restore `state`. A smaller ring takes the newest decisions."""
        ring, capacity = self._ring_of(member), self.config.capacity
        ring.columns["end"].tensor.zero_()
        head = int(meta["head"])
        first = max(int(meta["first"]), head - capacity)
        self._segments[member].load(tensors, segments, first, head)
        check_pending_serials(tensors["open"], head)
        self.firsts[member], self.heads[member] = first, head
        pending = self.serial[self._pending_of(member)]
        if tensors["open"].shape == pending.shape:
            pending.copy_(tensors["open"])
        if not self.config.prioritized:
            return
        at = torch.arange(first, head, device=self.leaf.device) % capacity
        self.leaf[member] = 0
        if "weight" in tensors:
            kept = tensors["weight"][len(tensors["weight"]) - len(at) :]
            self.leaf[member, at] = kept.to(self.leaf.device)
            self.highest[member] = int(np.array(meta["highest"], np.uint32).view(np.int32))
        else:  # it was saved without priorities: all count the same
            fit = ring.columns["end"].tensor[at] != 0
            self.leaf[member, at] = torch.where(fit, self.highest[member], 0)
        self.sum_up()
