"""Frozen policies that a learner plays against: room for them, and how they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.errors import ConfigError
from sparring.learn.acting import Answer, Draws
from sparring.learn.forward import bytes_of
from sparring.learn.learner import Learner
from sparring.nets.distribution import Sampler
from sparring.nets.frozen.cpu import GroupedHierarchy, GroupedNet
from sparring.nets.net import MEMORY, POLICY
from sparring.nets.remembering import Decides, seen_by
from sparring.phases import phase
from sparring.pools.lineups import Pots

Bytes = npt.NDArray[np.uint8]


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

    def __init__(self, net: GroupedNet | GroupedHierarchy, slots: int, seed: int) -> None:
        self.net, self.slots, self.sampler = net, slots, Sampler(seed)
        self.greedy = np.zeros(slots + 1, np.bool_)
        self.filled = np.zeros(slots + 1, np.bool_)

    def put(self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool) -> None:
        """Put a network into a slot."""
        check_slot(slot, self.slots)
        self.net.load(slot, weights)
        self.greedy[slot], self.filled[slot] = greedy, True

    @phase("past selves")
    @torch.no_grad()
    def answer(self, obs: Bytes, mask: Bytes, slot: npt.NDArray[np.int16], draws: Draws) -> Answer:
        """Choose an action for every row; `slot` says whose it is."""
        if not self.filled[slot].all():
            empty = int(slot[~self.filled[slot]][0])
            raise ConfigError(f"policy {empty} sits at tables and its slot is empty")
        said = self.net.say(torch.from_numpy(obs), slot)
        heads, memory = said[POLICY], said.get(MEMORY)
        action, _ = draws.draw(self.sampler, heads, mask)
        best = np.flatnonzero(self.greedy[slot])
        if len(best):
            action[best], _ = draws.of(best).draw(
                self.sampler, heads[best], mask[best], greedy=True
            )
        return Answer(action, memory=None if memory is None else bytes_of(memory))


class PlayerActor:
    """Answers the rows of one player that has no slot: another network, or a function."""

    def __init__(self, player: Decides, seed: int, *, greedy: bool = False) -> None:
        self.player, self.seed, self.greedy = player, seed, greedy

    def answer(self, obs: Bytes, mask: Bytes, draws: Draws) -> Answer:
        """Choose an action for every row. What it remembers is the first of the row's memory."""
        action, memory = self.player.decide(
            seen_by(self.player, obs),
            mask,
            greedy=self.greedy,
            seed=self.seed,
            rollout=draws.rollout,
            step=draws.one_step,
            rows=draws.rows,
        )
        return Answer(action, memory=memory)


class MadePlayers:
    """Answers the rows of whoever is made anew when a game begins."""

    def __init__(self, make: Callable[[int], Decides], rows: int, seed: int) -> None:
        """Seat nobody yet.

        make: returns the player of a game by its number. rows: of a game.
        """
        self.make, self.rows, self.seed = make, rows, seed
        self._seated: dict[int, Decides] = {}

    def begin(self, games: Iterable[int] | None = None) -> None:
        """Let games begin anew, all of them if none are given: others will sit there."""
        for game in list(self._seated) if games is None else games:
            self._seated.pop(game, None)

    def answer(self, obs: Bytes, mask: Bytes, draws: Draws) -> Answer:
        """Choose an action for every row, in one call for all games of a player."""
        mine: dict[int, list[int]] = {}
        for at, row in enumerate(draws.rows):
            game = int(row) // self.rows
            if game not in self._seated:
                self._seated[game] = self.make(game)
            mine.setdefault(id(self._seated[game]), []).append(at)
        action: npt.NDArray[Any] | None = None
        for places in mine.values():
            player = self._seated[int(draws.rows[places[0]]) // self.rows]
            said = PlayerActor(player, self.seed).answer(
                obs[places], mask[places], draws.of(places)
            )
            if action is None:
                action = np.zeros((len(obs), *said.action.shape[1:]), said.action.dtype)
            action[places] = said.action
        assert action is not None
        return Answer(action)
