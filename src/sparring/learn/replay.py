"""Replay: a ring of decisions with what followed them, to be learned from many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring import _native
from sparring.config import ReplayConfig
from sparring.errors import StateError
from sparring.games.rules import Rules
from sparring.learn.hindsight import Hindsight
from sparring.learn.learner import Segment
from sparring.learn.ring import (
    RingBuffer,
    Segments,
    array_of,
    bytes_per_decision,
    check_capacity,
    check_waiting,
    tensors_of,
)
from sparring.learn.rollout import RECORD, Rollout
from sparring.learn.transitions import NOT_A_SAMPLE, Transitions
from sparring.nets.distribution import squash_actions
from sparring.pools.lineups import LEARNER


@dataclass(frozen=True)
class ReplayBatch:
    """A batch for one optimizer step."""

    obs: Tensor
    """[batch, row_bytes]."""
    mask: Tensor
    """[batch, actions], bytes."""
    action: Tensor
    """[batch] int32, or [batch, box] as the games took it, within -1..1."""
    paid: Tensor
    """[batch]: discounted payments until `next_obs`."""
    discount: Tensor
    """[batch]: of what follows there. 0 if nothing does; negative where the value is that of the
    other seat of a zero-sum game, which was to move when the game was cut."""
    next_obs: Tensor
    """Of the same seat and role, up to n decisions later, or its last one before a cut. Where
    nothing follows (discount 0) the last decision stands for itself, with its own mask."""
    next_mask: Tensor
    weight: Tensor
    """[batch]: takes the preference of priorities back; 1 without them."""
    places: npt.NDArray[np.int64] | Tensor
    """Where the decisions lie in the ring."""

    def to(self, device: torch.device) -> ReplayBatch:
        """The batch where a network is; places stay where they are."""
        if self.obs.device.type == device.type:
            return self
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "places"}
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in kept.items()}
        return replace(self, **moved)


class ReplayBuffer:
    """A ring of decisions. Each is stored once; what follows is a link to another one.

    A decision gets its place when it is made; what it was paid and what followed is written once
    that is known, perhaps rollouts later. Until then it is not sampled, but it may be what follows
    another one. Serial numbers count all that was ever stored; what follows has a higher one, so
    that it is still there as long as the decision before it is. The work is done by
    csrc/core/replay.hpp, which the GPU shares.
    """

    def __init__(
        self,
        rules: Rules,
        config: ReplayConfig,
        *,
        row_bytes: int,
        max_pending: int,
        seed: int,
        squash: bool = False,
        threads: int = 1,
        relabeling: Sequence[Hindsight] = (),
    ) -> None:
        """Make room. carried: open decisions that rollouts hand on, see `Transitions`.

        threads: draw large batches; small ones are faster alone, and all are the same.
        anew: which samples are seen as if what came out had been the goal.
        """
        check_capacity(config.capacity, max_pending)
        self.rules, self.config, self.squash = rules, config, squash
        self.seed = seed % 2**64
        self.relabeling = relabeling
        self.ring = RingBuffer(rules, row_bytes, config.capacity, records=bool(relabeling))
        self.segments = Segments(self.ring)
        self.pending = np.full(max_pending, -1, np.int64)
        """Serial numbers of decisions that still wait for what follows, -1 where there is none."""
        self.weight: npt.NDArray[np.uint32] | None = None
        """Of every place, 0 where nothing can be sampled: priorities in whole numbers."""
        self.sums: npt.NDArray[np.uint64] | None = None
        """Of weights, the total first; see csrc/core/sum_tree.hpp."""
        if config.prioritized:
            self.weight = np.zeros(config.capacity, np.uint32)
            self.sums = np.zeros(_native.tree_sums(config.capacity), np.uint64)
        columns: dict[str, Any] = {RECORD: None, **self.ring.columns}
        raw = columns["action"].reshape(config.capacity, -1).view(np.uint8)
        self.native = _native.ReplayRing(
            actions=rules.actions,
            box=rules.box,
            **{**columns, "action": raw},
            open=self.pending,
            weight=self.weight,
            sums=self.sums,
            threads=threads,
        )
        self.unsettled: Callable[[], npt.NDArray[np.int64]] = lambda: self.pending
        """Decisions that may still change, by serial number."""
        self._ages = self._sampled = 0

    def __len__(self) -> int:
        """Decisions that can be sampled."""
        return self.native.count

    @property
    def head(self) -> int:
        """Entries stored so far: the serial number that comes next."""
        return self.native.head

    @property
    def first(self) -> int:
        """The oldest serial number that is still there."""
        return self.native.first

    def mark_truncations(self, rollout: Rollout) -> None:
        """Before linking: say which cut games have a last row that stands for what would follow."""
        flat, truncations = rollout.final_value.reshape(-1), rollout.truncations
        for where, mirrored in zip(truncations.where, truncations.mirrored, strict=True):
            flat[where] = 0.0
            flat[where[mirrored] ^ 1] = 0.0

    def push(self, rollout: Rollout, transitions: Transitions) -> None:
        """Take over a rollout that was linked; call it before its open decisions are carried."""
        check_capacity(self.config.capacity, transitions.places)
        numbers = None
        if self.rules.box:
            numbers = np.clip(squash_actions(rollout.action, squash=self.squash), -1.0, 1.0)
        self.native.push(
            learner=LEARNER,
            policy=rollout.policy,
            seat=rollout.seat,
            obs=rollout.obs,
            mask=rollout.mask,
            action=rollout.action if numbers is None else None,
            numbers=numbers,
            end=transitions.end,
            next=transitions.next,
            paid=transitions.paid,
            discount=transitions.discount,
            open_rows=transitions.pending_rows(),
            record=rollout.of_place,
            **last_rows(rollout),
        )

    def sample(self, number: int, correction: float = 1.0) -> ReplayBatch:
        """Draw a batch; the same for the same seed, contents and number of the optimizer step."""
        if not len(self):
            raise StateError("nothing can be sampled yet")
        rules, batch = self.rules, self.config.batch
        width = self.ring["obs"].shape[1]
        obs, next_obs = np.empty((2, batch, width), np.uint8)
        mask, next_mask = np.empty((2, batch, rules.actions), np.uint8)
        paid, discount, weight = np.empty((3, batch), np.float32)
        places = np.empty(batch, np.int64)
        action = numbers = None
        if rules.box:
            numbers = np.empty((batch, rules.box), np.float32)
        else:
            action = np.empty(batch, np.int32)
        self._ages += self.native.sample(
            seed=self.seed,
            number=number % 2**32,
            n_step=self.config.n_step,
            correction=correction,
            obs=obs,
            mask=mask,
            action=action,
            numbers=numbers,
            paid=paid,
            discount=discount,
            next_obs=next_obs,
            next_mask=next_mask,
            weight=weight,
            places=places,
            **self._anew(),
        )
        self._sampled += batch
        return ReplayBatch(
            torch.from_numpy(obs),
            torch.from_numpy(mask),
            torch.from_numpy(action if numbers is None else numbers),
            torch.from_numpy(paid),
            torch.from_numpy(discount),
            torch.from_numpy(next_obs),
            torch.from_numpy(next_mask),
            torch.from_numpy(weight),
            places,
        )

    def _anew(self) -> dict[str, Any]:
        """Which samples are seen in hindsight, by lot, and what they are paid then."""
        found: dict[str, Any] = {"goals": None, "rewards": [], "share": 0.0}
        for one in self.relabeling:
            found |= one.sampling()
        return found

    def reprioritize(self, places: npt.NDArray[np.int64], error: npt.NDArray[np.float32]) -> None:
        """Say how wrong the estimates of sampled decisions were."""
        if self.weight is None:
            raise StateError("only a prioritized replay has priorities: replay.prioritized=true")
        self.native.reprioritize(places=places, error=error, exponent=self.config.priority_exponent)

    def weights(self) -> tuple[npt.NDArray[np.uint32], int] | None:
        """Copy all priorities; None where there are none."""
        return None if self.weight is None else (self.weight.copy(), self.native.highest)

    def put_weights(self, kept: tuple[npt.NDArray[np.uint32], int] | None) -> None:
        """Go on with `weights` of another moment."""
        if self.weight is not None and kept is not None:
            self.weight[:], self.native.highest = kept
            self.native.sum_all()

    def clear(self) -> None:
        """Forget everything. Serial numbers go on, so that none means two things."""
        self.ring["end"][:] = NOT_A_SAMPLE
        self.pending[:] = -1
        self.native.first, self.native.count = self.native.head, 0
        if self.weight is not None:
            self.weight[:] = 0
            self.native.sum_all()

    def stats(self) -> dict[str, float]:
        """learning/replay_fill, a share, and learning/replay_age, decisions ago in the mean.

        The age is that of what was sampled since the last call.
        """
        kept = self.head - self.first
        age = self._ages / self._sampled if self._sampled else kept / 2
        self._ages = self._sampled = 0
        fill = kept / self.config.capacity
        return {"learning/replay_fill": fill, "learning/replay_age": age}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Segment], dict[str, int]]:
        """Return what is still changing, sealed segments by name, and counts."""
        first, head = self.first, self.head
        columns, readers = self.segments.save(first, head, self.unsettled())
        columns["open"] = self.pending.copy()
        if self.weight is not None:
            columns["weight"] = self.weight[np.arange(first, head) % self.config.capacity]
        counts = {"first": first, "head": head, "highest": self.native.highest}
        return tensors_of(columns), readers, counts

    def load_state(
        self,
        tensors: Mapping[str, Tensor],
        segments: Mapping[str, Mapping[str, Tensor]],
        meta: Mapping[str, int],
    ) -> None:
        """Go on from `state`. A ring of another capacity takes the newest that it has room for."""
        self.clear()
        head = int(meta["head"])
        first = max(int(meta["first"]), head - self.config.capacity)
        self.segments.load(tensors, segments, first, head)
        check_waiting(tensors["open"], head)
        action = self.ring["action"][self.ring["end"] != NOT_A_SAMPLE]
        if not self.rules.box and not ((action >= 0) & (action < self.rules.actions)).all():
            raise StateError(f"the checkpoint's replay has actions that {self.rules.name} has not")
        self.native.first, self.native.head = first, head
        self.native.count = int(np.count_nonzero(self.ring["end"]))
        if tensors["open"].shape == self.pending.shape:
            self.pending[:] = tensors["open"].numpy()
        if self.weight is not None:
            self._load_weights(tensors, int(meta["highest"]))

    def _load_weights(self, tensors: Mapping[str, Tensor], highest: int) -> None:
        assert self.weight is not None
        at = np.arange(self.first, self.head) % self.config.capacity
        if "weight" in tensors:
            kept = array_of(tensors["weight"], np.dtype(np.uint32))
            self.weight[at] = kept[len(kept) - len(at) :]
            self.native.highest = highest
        else:  # it was saved without priorities: all count the same
            self.weight[at] = np.where(self.ring["end"][at], self.native.highest, 0)
        self.native.sum_all()


def last_rows(rollout: Rollout) -> dict[str, Any]:
    """The rows of the cuts, and which of them stands for each place in `final_value`.

    There is none for a seat that was out before the cut: nothing follows.
    """
    truncations = rollout.truncations
    if not truncations.where:
        return dict.fromkeys(("cut_entry", "cut_sign", "cut_obs", "cut_mask"))
    where, mirrored = np.concatenate(truncations.where), np.concatenate(truncations.mirrored)
    entry = np.full(rollout.final_value.size, -1, np.int32)
    sign = np.ones(rollout.final_value.size, np.float32)
    entry[where] = np.arange(len(where))
    entry[where[mirrored] ^ 1] = np.flatnonzero(mirrored)
    sign[where[mirrored] ^ 1] = -1.0
    obs, mask = np.concatenate(truncations.obs), np.concatenate(truncations.mask)
    return {"cut_entry": entry, "cut_sign": sign, "cut_obs": obs, "cut_mask": mask}


def replay_bytes(
    rules: Rules,
    row_bytes: int,
    config: ReplayConfig,
    *,
    device: bool = False,
    records: bool = False,
) -> int:
    """Bytes of a replay, to be refused before they are allocated."""
    each = bytes_per_decision(rules, row_bytes, records=records) + 4 * config.prioritized
    if device and not rules.box:
        each += 2  # there an action always takes four bytes
    sums = 8 * _native.tree_sums(config.capacity) if config.prioritized else 0
    return config.capacity * each + sums
