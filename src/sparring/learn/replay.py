"""Replay buffer: a ring of transitions, with n-step returns and priorities."""

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
    check_pending_serials,
    tensors_of,
)
from sparring.learn.rollout import RECORD, Rollout
from sparring.learn.transitions import NOT_A_SAMPLE, Transitions
from sparring.nets.sampling import squash_actions
from sparring.pools.lineups import LEARNER


@dataclass(frozen=True)
class ReplayBatch:
    """A batch for one optimizer step."""

    obs: Tensor
    """[batch, row_bytes]."""
    mask: Tensor
    """[batch, actions], bytes."""
    action: Tensor
    """[batch] int32, or [batch, box] within -1..1."""
    reward: Tensor
    """[batch]: sum of discounted rewards until `next_obs`."""
    discount: Tensor
    """[batch]: of the value at `next_obs`. 0 after termination; negative if that value belongs to
    the opponent of a zero-sum game, who was to move when the game was truncated."""
    next_obs: Tensor
    """Of the same seat and role, n decisions later or the last one before a truncation. With
    discount 0 it repeats the last decision, with its mask."""
    next_mask: Tensor
    weight: Tensor
    """[batch]: importance weight of prioritized sampling, else 1."""
    places: npt.NDArray[np.int64] | Tensor
    """Indices into the ring."""

    def to(self, device: torch.device) -> ReplayBatch:
        """Return the batch on a device; `places` are not moved."""
        if self.obs.device.type == device.type:
            return self
        saved = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "places"}
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in saved.items()}
        return replace(self, **moved)


class ReplayBuffer:
    """A ring of transitions. Each observation is stored once; the next one is a link to it.

    A decision is stored when it is made; its reward and its link follow once they are known,
    perhaps rollouts later. Until then it is not sampled, but other decisions may link to it. Serial
    numbers count all decisions ever stored. A link leads to a higher one, so that its target is not
    overwritten first. csrc/core/replay.hpp does the work, for CPU and GPU.
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
        """Allocate the ring.

        max_pending: see `Transitions`. threads: sample large batches, with equal results.
        relabeling: relabels samples with the goal that was reached (HER).
        """
        check_capacity(config.capacity, max_pending)
        self.rules, self.config, self.squash = rules, config, squash
        self.seed = seed % 2**64
        self.relabeling = relabeling
        self.ring = RingBuffer(rules, row_bytes, config.capacity, records=bool(relabeling))
        self.segments = Segments(self.ring)
        self.pending = np.full(max_pending, -1, np.int64)
        """Serial numbers of pending transitions, -1 for none."""
        self.weight: npt.NDArray[np.uint32] | None = None
        """Priority of every place as an integer, 0 if it cannot be sampled."""
        self.sums: npt.NDArray[np.uint64] | None = None
        """Sum tree of priorities, the total first; see csrc/core/sum_tree.hpp."""
        if config.prioritized:
            self.weight = np.zeros(config.capacity, np.uint32)
            self.sums = np.zeros(_native.tree_sums(config.capacity), np.uint64)
        columns: dict[str, Any] = {RECORD: None, **self.ring.columns}
        raw = columns["action"].reshape(config.capacity, -1).view(np.uint8)
        renamed = {"paid": "reward", RECORD: "goal_result"}
        named = {renamed.get(name, name): column for name, column in columns.items()}
        named["action"] = raw
        self.native = _native.ReplayRing(
            actions=rules.actions,
            box=rules.box,
            **named,
            pending=self.pending,
            weight=self.weight,
            sums=self.sums,
            threads=threads,
        )
        self.changeable: Callable[[], npt.NDArray[np.int64]] = lambda: self.pending
        """Returns the serial numbers of decisions that may still change."""
        self._ages = self._sampled = 0

    def __len__(self) -> int:
        """Number of transitions that can be sampled."""
        return self.native.count

    @property
    def head(self) -> int:
        """The next serial number."""
        return self.native.head

    @property
    def first(self) -> int:
        """The oldest serial number in the ring."""
        return self.native.first

    def mark_truncations(self, rollout: Rollout) -> None:
        """Mark truncated games whose final observation is stored; call before linking."""
        flat, truncations = rollout.final_value.reshape(-1), rollout.truncations
        for where, mirrored in zip(truncations.where, truncations.mirrored, strict=True):
            flat[where] = 0.0
            flat[where[mirrored] ^ 1] = 0.0

    def push(self, rollout: Rollout, transitions: Transitions) -> None:
        """Store a linked rollout; call before its pending transitions are moved."""
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
            reward=transitions.paid,
            discount=transitions.discount,
            pending_rows=transitions.pending_rows(),
            goal_result=rollout.of_place,
            **final_rows(rollout),
        )

    def sample(self, number: int, correction: float = 1.0) -> ReplayBatch:
        """Sample a batch, determined by seed, contents and number of the optimizer step."""
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
            reward=paid,
            discount=discount,
            next_obs=next_obs,
            next_mask=next_mask,
            weight=weight,
            indices=places,
            **self._relabel_options(),
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

    def _relabel_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"goals": None, "reward_weights": [], "share": 0.0}
        for hindsight in self.relabeling:
            options |= hindsight.sampling()
        return options

    def reprioritize(self, places: npt.NDArray[np.int64], error: npt.NDArray[np.float32]) -> None:
        """Set the priorities of samples by their TD errors."""
        if self.weight is None:
            raise StateError("only a prioritized replay has priorities: replay.prioritized=true")
        self.native.reprioritize(
            indices=places, error=error, exponent=self.config.priority_exponent
        )

    def weights(self) -> tuple[npt.NDArray[np.uint32], int] | None:
        """Copy all priorities; None without prioritized sampling."""
        return None if self.weight is None else (self.weight.copy(), self.native.highest)

    def load_weights(self, saved: tuple[npt.NDArray[np.uint32], int] | None) -> None:
        """Restore `weights`."""
        if self.weight is not None and saved is not None:
            self.weight[:], self.native.highest = saved
            self.native.sum_all()

    def clear(self) -> None:
        """Empty the ring. Serial numbers continue, so that each names one decision."""
        self.ring["end"][:] = NOT_A_SAMPLE
        self.pending[:] = -1
        self.native.first, self.native.count = self.native.head, 0
        if self.weight is not None:
            self.weight[:] = 0
            self.native.sum_all()

    def stats(self) -> dict[str, float]:
        """Return the share of the ring in use, and the mean age of samples since the last call."""
        size = self.head - self.first
        age = self._ages / self._sampled if self._sampled else size / 2
        self._ages = self._sampled = 0
        fill = size / self.config.capacity
        return {"learning/replay_fill": fill, "learning/replay_age": age}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Segment], dict[str, int]]:
        """Return tensors that may still change, readers of sealed segments, and counts."""
        first, head = self.first, self.head
        columns, readers = self.segments.save(first, head, self.changeable())
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
        """Restore `state`. A smaller ring takes the newest decisions."""
        self.clear()
        head = int(meta["head"])
        first = max(int(meta["first"]), head - self.config.capacity)
        self.segments.load(tensors, segments, first, head)
        check_pending_serials(tensors["open"], head)
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
            saved = array_of(tensors["weight"], np.dtype(np.uint32))
            self.weight[at] = saved[len(saved) - len(at) :]
            self.native.highest = highest
        else:  # saved without priorities
            self.weight[at] = np.where(self.ring["end"][at], self.native.highest, 0)
        self.native.sum_all()


def final_rows(rollout: Rollout) -> dict[str, Any]:
    """Return the final rows of truncated games, and their index for each entry of `final_value`.

    A seat that had left the game before has none.
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
    """Bytes of a replay buffer."""
    bytes_each = bytes_per_decision(rules, row_bytes, records=records) + 4 * config.prioritized
    if device and not rules.box:
        bytes_each += 2  # actions are int32 on a GPU
    sums = 8 * _native.tree_sums(config.capacity) if config.prioritized else 0
    return config.capacity * bytes_each + sums
