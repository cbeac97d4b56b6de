"""Replay: a ring of decisions with what followed them, to be learned from many times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import ReplayConfig
from sparring.errors import StateError
from sparring.games.rules import Rules
from sparring.learn.learner import Segment
from sparring.learn.ring import Ring, bytes_per_decision, check_capacity, pack_masks, unpack_masks
from sparring.learn.rollout import Rollout
from sparring.learn.transitions import NOT_A_SAMPLE, TO_NEXT, TRUNCATED, Transitions
from sparring.nets.distribution import played
from sparring.pools.lineups import LEARNER


@dataclass(frozen=True)
class Samples:
    """A batch for one optimiser step."""

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


class Replay:
    """A ring of decisions. Each is stored once; what follows is a link to another one.

    A decision gets its place when it is made; what it was paid and what followed is written once
    that is known, perhaps rollouts later. Until then it is not sampled, but it may be what follows
    another one. Serial numbers count all that was ever stored; what follows has a higher one, so
    that it is still there as long as the decision before it is.
    """

    def __init__(
        self,
        rules: Rules,
        config: ReplayConfig,
        *,
        row_bytes: int,
        carried: int,
        seed: int,
        squash: bool = False,
    ) -> None:
        """Make room. carried: open decisions that rollouts hand on, see `Transitions`."""
        check_capacity(config.capacity, carried)
        self.rules, self.config, self.seed, self.squash = rules, config, seed, squash
        self.ring = Ring(rules, row_bytes, config.capacity)
        self.first = 0
        """The oldest serial number that counts."""
        self.head = 0
        """The serial number that comes next."""
        self.count = 0
        self.open = np.full(carried, -1, np.int64)
        """Serial numbers of decisions that still wait for what follows, -1 where there is none."""

    def __len__(self) -> int:
        """Decisions that can be sampled."""
        return self.count

    def mark_cuts(self, rollout: Rollout) -> None:
        """Before linking: say which cut games have a last row that stands for what would follow."""
        flat, cuts = rollout.final_value.reshape(-1), rollout.cuts
        for where, mirrored in zip(cuts.where, cuts.mirrored, strict=True):
            flat[where] = 0.0
            flat[where[mirrored] ^ 1] = 0.0

    def push(self, rollout: Rollout, transitions: Transitions) -> None:
        """Take over a rollout that was linked; call it before its open decisions are carried."""
        mine = (rollout.policy == LEARNER) & (rollout.seat >= 0)
        places = transitions.carried + np.flatnonzero(mine)
        cut = np.flatnonzero(transitions.end == TRUNCATED)
        entry, sign = last_rows(rollout, transitions.next[cut])
        stored = np.unique(entry[entry >= 0])
        check_capacity(self.config.capacity, len(places) + len(stored))
        serial = np.full(transitions.places, -1, np.int64)
        serial[: transitions.carried] = self.open
        serial[places] = self.head + np.arange(len(places))
        behind = self.head + len(places)
        self._free(len(places) + len(stored))
        self.ring.write(self.head, self._rows_of(rollout, places))
        if len(stored):
            obs, mask = np.concatenate(rollout.cuts.obs), np.concatenate(rollout.cuts.mask)
            self.ring.write(behind, {"obs": obs[stored], "mask": pack_masks(mask[stored])})
        self.head = behind + len(stored)
        self.first = max(self.first, self.head - self.config.capacity)
        follows = np.full(transitions.places, -1, np.int64)
        going = np.flatnonzero(transitions.end == TO_NEXT)
        follows[going] = serial[transitions.next[going]]
        follows[cut] = np.where(entry >= 0, behind + np.searchsorted(stored, entry), -1)
        discount = transitions.discount.copy()
        discount[cut] *= sign
        self._link(serial, follows, discount, transitions)
        rows = transitions.open_rows()
        self.open = np.where(rows >= 0, serial[rows], -1)

    def _rows_of(self, rollout: Rollout, places: npt.NDArray[np.intp]) -> dict[str, Any]:
        """What is stored of decisions when they are made."""
        action = rollout.action[places]
        if self.rules.box:
            action = np.clip(played(action, squash=self.squash), -1.0, 1.0)
        mask = pack_masks(rollout.mask[places])
        return {"obs": rollout.obs[places], "mask": mask, "action": action}

    def _free(self, count: int) -> None:
        """Forget what lies where the next `count` rows are written."""
        for here, _ in self.ring.stretches(self.head, count):
            self.count -= int(np.count_nonzero(self.ring["end"][here]))
            self.ring["end"][here] = NOT_A_SAMPLE

    def _link(
        self,
        serial: npt.NDArray[np.int64],
        follows: npt.NDArray[np.int64],
        discount: npt.NDArray[np.float32],
        transitions: Transitions,
    ) -> None:
        """Write what followed decisions; those that were overwritten meanwhile are skipped."""
        linked = np.flatnonzero((transitions.end != NOT_A_SAMPLE) & (serial >= self.first))
        at, after = serial[linked] % self.config.capacity, follows[linked]
        ring, known = self.ring, after >= 0
        ring["end"][at] = transitions.end[linked]
        ring["paid"][at] = transitions.paid[linked]
        ring["next"][at] = np.where(known, after % self.config.capacity, at)
        ring["discount"][at] = np.where(known, discount[linked], np.float32(0))
        self.count += len(linked)

    def sample(self, number: int, correction: float = 1.0) -> Samples:
        """Draw a batch; the same for the same seed, contents and number of the optimiser step."""
        if not self.count:
            raise StateError("nothing can be sampled yet")
        ring, config = self.ring, self.config
        rng = np.random.default_rng((self.seed, number))
        fit = np.flatnonzero(ring["end"])
        places = fit[rng.integers(0, len(fit), config.batch)]
        paid, discount, last = self._follow(places)
        actions = self.rules.actions
        action = ring["action"][places]
        return Samples(
            obs=torch.from_numpy(ring["obs"][places]),
            mask=torch.from_numpy(unpack_masks(ring["mask"][places], actions)),
            action=torch.from_numpy(action if self.rules.box else action.astype(np.int32)),
            paid=torch.from_numpy(paid),
            discount=torch.from_numpy(discount),
            next_obs=torch.from_numpy(ring["obs"][last]),
            next_mask=torch.from_numpy(unpack_masks(ring["mask"][last], actions)),
            weight=torch.ones(config.batch),
            places=places,
        )

    def _follow(self, places: npt.NDArray[np.int64]) -> tuple[Any, Any, Any]:
        """Payments of up to n decisions, the discount of what follows them, and its place."""
        ring, at = self.ring, places.copy()
        paid, discount = np.zeros(len(at), np.float32), np.ones(len(at), np.float32)
        going = np.ones(len(at), np.bool_)
        for _ in range(self.config.n_step):
            here = at[going]
            paid[going] += discount[going] * ring["paid"][here]
            discount[going] *= ring["discount"][here]
            going &= discount != 0
            at[going] = ring["next"][at[going]]
            going &= ring["end"][at] != NOT_A_SAMPLE
        return paid, discount, at

    def reprioritise(self, places: npt.NDArray[np.int64], error: npt.NDArray[np.float32]) -> None:
        """Say how wrong the estimates of sampled decisions were."""
        raise NotImplementedError

    def clear(self) -> None:
        """Forget everything. Serial numbers go on, so that no name is used twice."""
        self.ring["end"][:] = NOT_A_SAMPLE
        self.first, self.count = self.head, 0
        self.open[:] = -1

    def stats(self) -> dict[str, float]:
        """learning/replay_fill, a share, and learning/replay_age, decisions ago in the mean."""
        kept = self.head - self.first
        return {
            "learning/replay_fill": kept / self.config.capacity,
            "learning/replay_age": kept / 2,
        }

    def state(self) -> tuple[dict[str, Tensor], dict[str, Segment], dict[str, int]]:
        """Return what is still changing, sealed segments by name, and counts."""
        raise NotImplementedError

    def load_state(
        self,
        tensors: Mapping[str, Tensor],
        segments: Mapping[str, Mapping[str, Tensor]],
        meta: Mapping[str, int],
    ) -> None:
        """Go on from `state`."""
        raise NotImplementedError


def last_rows(
    rollout: Rollout, wanted: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
    """Which of the cuts' rows stands for each of these places in `final_value`, and its sign.

    -1 where there is none: that seat was out before the cut, and nothing follows.
    """
    cuts = rollout.cuts
    if not (len(wanted) and cuts.where):
        return np.full(len(wanted), -1, np.intp), np.ones(len(wanted), np.float32)
    where, mirrored = np.concatenate(cuts.where), np.concatenate(cuts.mirrored)
    entry = np.full(rollout.final_value.size, -1, np.intp)
    entry[where] = np.arange(len(where))
    sign = np.ones(rollout.final_value.size, np.float32)
    entry[where[mirrored] ^ 1] = np.flatnonzero(mirrored)
    sign[where[mirrored] ^ 1] = -1.0
    return entry[wanted], sign[wanted]


def replay_bytes(rules: Rules, row_bytes: int, config: ReplayConfig) -> int:
    """Bytes of a replay, to be refused before they are allocated."""
    return config.capacity * bytes_per_decision(rules, row_bytes)
