"""Frozen policies that a learner plays against: room for them, and how they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.errors import ConfigError
from sparring.learn.collect import Answer, Draws
from sparring.learn.learner import Learner
from sparring.nets.distribution import Sampler
from sparring.nets.grouped import GroupedNet
from sparring.nets.policy import Policy
from sparring.pools.lineups import Pots

Bytes = npt.NDArray[np.uint8]
Function = Callable[[Bytes, Bytes, np.random.Generator], npt.ArrayLike]
"""A player of one's own: actions for a batch of observations and masks."""


@runtime_checkable
class TakesOpponents(Learner, Protocol):
    """A learner with slots: room for frozen networks that are answered together.

    Slot k is policy id k, from 1 on; id 0 is the learner itself. What is in a slot may be exchanged
    when no game seats it; nobody is exchanged in the middle of a game.
    """

    @property
    def slots(self) -> int:
        """How many there are."""

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        """Put a frozen network of the learner's own kind into a slot."""

    def set_pots(self, pots: Pots, member: int = 0) -> None:
        """Say who is drawn from every pot from now on, when games begin."""

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id holds in the games that are running [slots + 1]."""


def check_slot(slot: int, slots: int) -> None:
    """Refuse a slot that is not there."""
    if not 1 <= slot <= slots:
        raise ConfigError(f"slot {slot} is outside 1..{slots}")


class SlotActor:
    """Answers the rows of all slots: one grouped forward, however many policies they are of."""

    def __init__(self, net: GroupedNet, slots: int, seed: int) -> None:
        self.net, self.slots, self.sampler = net, slots, Sampler(seed)
        self.greedy = np.zeros(slots + 1, np.bool_)
        self.filled = np.zeros(slots + 1, np.bool_)

    def put(self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool) -> None:
        """Put a network into a slot."""
        check_slot(slot, self.slots)
        self.net.load(slot, weights)
        self.greedy[slot], self.filled[slot] = greedy, True

    @torch.no_grad()
    def answer(
        self, obs: Bytes, mask: Bytes, slot: npt.NDArray[np.int16], draws: Draws
    ) -> npt.NDArray[Any]:
        """Choose an action for every row; `slot` says whose it is."""
        if not self.filled[slot].all():
            empty = int(slot[~self.filled[slot]][0])
            raise ConfigError(f"policy {empty} sits at tables and its slot is empty")
        heads = self.net.policy_heads(torch.from_numpy(obs), slot)
        action, _ = self._draw(heads, mask, draws, slice(None), greedy=False)
        best = np.flatnonzero(self.greedy[slot])
        if len(best):
            action[best], _ = self._draw(heads[best], mask[best], draws, best, greedy=True)
        return action

    def _draw(
        self, heads: Tensor, mask: Bytes, draws: Draws, rows: Any, *, greedy: bool
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        return self.sampler.draw(
            heads,
            mask,
            rollout=draws.rollout,
            step=draws.step,
            rows=draws.rows[rows],
            greedy=greedy,
        )


class PolicyActor:
    """Answers the rows of one frozen policy of whatever network."""

    def __init__(self, policy: Policy, seed: int, *, greedy: bool = False) -> None:
        self.policy, self.sampler, self.greedy = policy, Sampler(seed), greedy

    def answer(self, obs: Bytes, mask: Bytes, draws: Draws) -> Answer:
        """Choose an action for every row."""
        action, _ = self.sampler.draw(
            self.policy.heads(obs)["policy"],
            mask,
            rollout=draws.rollout,
            step=draws.step,
            rows=draws.rows,
            greedy=self.greedy,
        )
        return Answer(action)


class FunctionActor:
    """Answers the rows of a player that somebody wrote in Python."""

    def __init__(self, name: str, function: Function, seed: int) -> None:
        self.name, self.function, self.seed = name, function, seed % 2**64

    def answer(self, obs: Bytes, mask: Bytes, draws: Draws) -> Answer:
        """Choose an action for every row; it is checked where the games take it."""
        first = int(draws.rows[0]) if len(draws.rows) else 0
        key = np.array([self.seed, draws.rollout], np.uint64)
        place = np.array([0, draws.step, first, 0], np.uint64)
        rng = np.random.Generator(np.random.Philox(key=key, counter=place))
        return Answer(checked_actions(self.name, self.function(obs, mask, rng), mask))


def checked_actions(name: str, given: npt.ArrayLike, mask: Bytes) -> npt.NDArray[Any]:
    """Return what a function answered; what cannot be played is refused with its row."""
    action = np.asarray(given)
    if mask.shape[1] == 0:
        if action.ndim != 2 or len(action) != len(mask) or action.dtype.kind not in "fiu":
            raise ConfigError(
                f"{name} answered {action.dtype} {action.shape} for {len(mask)} rows; give "
                "an array of numbers, a line for every row"
            )
        if not np.isfinite(action).all():
            raise ConfigError(f"{name} answered numbers that are not finite")
        return action.astype(np.float32)
    if action.shape != (len(mask),) or action.dtype.kind not in "iu":
        raise ConfigError(
            f"{name} answered {action.dtype} {action.shape} for {len(mask)} rows; give an array of "
            f"{len(mask)} whole numbers"
        )
    known = (action >= 0) & (action < mask.shape[1])
    legal = known & (mask[np.arange(len(mask)), np.where(known, action, 0)] != 0)
    for row in np.flatnonzero(~legal)[:1]:
        options = ", ".join(map(str, np.flatnonzero(mask[row])))
        raise ConfigError(
            f"{name}: action {action[row]} of row {row} is not legal; legal: {options}"
        )
    return action.astype(np.int32)
