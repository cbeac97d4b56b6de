"""Acting: what policies are asked and answer, how a learner explores, and frozen opponents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.forward import Forward, bytes_of
from sparring.learn.learner import Learner
from sparring.nets.distribution import ActionSampler
from sparring.nets.frozen.cpu import GroupedHierarchy, GroupedNet
from sparring.nets.net import MEMORY, POLICY, HeadOutputs, head_width
from sparring.nets.stateful_player import BatchPlayer, rows_read_by
from sparring.phases import phase
from sparring.pools.lineups import Mixes

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class RngKeys:
    """Which random numbers answer some rows: the same whatever batch the rows come in."""

    rollout: int
    step: int | npt.NDArray[np.intp]
    """Of all rows, or of each: groups of games may have come to different ones."""
    rows: npt.NDArray[np.intp]

    @property
    def one_step(self) -> int:
        assert isinstance(self.step, int)
        return self.step

    def draw(
        self, sampler: ActionSampler, head: Tensor, mask: Bytes, **how: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Return actions and their log-probabilities. how: see `ActionSampler.draw`."""
        where: dict[str, Any] = {"rollout": self.rollout, "step": self.step, "rows": self.rows}
        return sampler.draw(head, mask, **where, **how)

    def of(self, rows: Any) -> RngKeys:
        step = self.step if isinstance(self.step, int) else self.step[rows]
        return RngKeys(self.rollout, step, self.rows[rows])


@dataclass(frozen=True)
class ActorOutput:
    """What a policy says about some rows."""

    action: npt.NDArray[Any]
    """The learner's as drawn, before bounds or squashing; others' as games take it."""
    columns: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    """What the learner keeps beside it."""
    memory: Bytes | None = None
    """What is remembered of each row's seat, the first bytes of its memory [rows, bytes]."""


class Actor(Protocol):
    """Answers the rows of one policy."""

    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
        """Choose an action for every row."""


@runtime_checkable
class PerGameActor(Protocol):
    """An actor whose players last for a game."""

    def begin(self, games: Iterable[int] | None = None) -> None:
        """Let games begin anew, by their numbers in the run; all of them if none are given."""


class GroupedActor(Protocol):
    """Answers the rows of several policies together."""

    slots: int
    """Policies 1 to this one."""

    def act(
        self, obs: Bytes, mask: Bytes, slot: npt.NDArray[np.int16], keys: RngKeys
    ) -> ActorOutput:
        """Choose an action for every row; `slot` says whose it is."""


class Exploring:
    """Answers the learner's rows by its choice; with probability epsilon, any legal action."""

    def __init__(
        self,
        forward: Forward,
        rules: Rules,
        seed: int,
        *,
        greedy: bool,
        keep: Callable[[HeadOutputs, Tensor], Mapping[str, npt.NDArray[np.float32]]] | None = None,
    ) -> None:
        """Act with a network.

        greedy: its best action, else one that is drawn from its head.
        keep: what is kept of every row beside its action, of what heads say and its mask.
        """
        self.forward, self.rules, self.greedy, self.keep = forward, rules, greedy, keep
        self.sampler = ActionSampler(seed)
        self.epsilon = np.zeros(0, np.float32)
        """By game; of one entry: the same in all of them."""

    def set_epsilon(self, epsilon: float | npt.NDArray[np.float32]) -> None:
        """Set how often any action is taken, for all games or for each."""
        self.epsilon = np.atleast_1d(np.asarray(epsilon, np.float32))

    @torch.no_grad()
    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
        """Choose an action for every row."""
        if self.keep is None and (self.epsilon == 1).all():
            heads = {POLICY: torch.zeros(len(obs), head_width(self.rules))}
        else:
            heads = self.forward(torch.from_numpy(obs))
        game = keys.rows // self.rules.rows
        epsilon = self.epsilon[game] if len(self.epsilon) > 1 else self.epsilon
        explored = np.broadcast_to(epsilon, len(obs))
        squash = self.forward.net.config.squash
        how: dict[str, Any] = {"greedy": self.greedy, "epsilon": explored, "squash": squash}
        action, _ = keys.draw(self.sampler, heads[POLICY], mask, **how)
        kept = self.keep(heads, torch.from_numpy(mask)) if self.keep else {}
        return ActorOutput(action, kept, self.forward.memory(obs, heads))


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

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        """Say who is drawn from every mix from now on, when games begin."""

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id holds in the games that are running [slots + 1]."""


def check_slot(slot: int, slots: int) -> None:
    if not 1 <= slot <= slots:
        raise ConfigError(f"slot {slot} is outside 1..{slots}")


class SlotActor:
    """Answers the rows of all slots: one grouped forward, however many policies they are of."""

    def __init__(self, net: GroupedNet | GroupedHierarchy, slots: int, seed: int) -> None:
        self.net, self.slots, self.sampler = net, slots, ActionSampler(seed)
        self.greedy = np.zeros(slots + 1, np.bool_)
        self.filled = np.zeros(slots + 1, np.bool_)

    def put(self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool) -> None:
        check_slot(slot, self.slots)
        self.net.load(slot, weights)
        self.greedy[slot], self.filled[slot] = greedy, True

    @phase("past selves")
    @torch.no_grad()
    def act(
        self, obs: Bytes, mask: Bytes, slot: npt.NDArray[np.int16], keys: RngKeys
    ) -> ActorOutput:
        """Choose an action for every row; `slot` says whose it is."""
        if not self.filled[slot].all():
            empty = int(slot[~self.filled[slot]][0])
            raise ConfigError(f"policy {empty} sits at tables and its slot is empty")
        said = self.net.forward(torch.from_numpy(obs), slot)
        heads, memory = said[POLICY], said.get(MEMORY)
        action, _ = keys.draw(self.sampler, heads, mask)
        best = np.flatnonzero(self.greedy[slot])
        if len(best):
            action[best], _ = keys.of(best).draw(self.sampler, heads[best], mask[best], greedy=True)
        return ActorOutput(action, memory=None if memory is None else bytes_of(memory))


class PlayerActor:
    """Answers the rows of one player that has no slot: another network, or a function."""

    def __init__(self, player: BatchPlayer, seed: int, *, greedy: bool = False) -> None:
        self.player, self.seed, self.greedy = player, seed, greedy

    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
        """Choose an action for every row. What it remembers is the first of the row's memory."""
        action, memory = self.player.decide(
            rows_read_by(self.player, obs),
            mask,
            greedy=self.greedy,
            seed=self.seed,
            rollout=keys.rollout,
            step=keys.one_step,
            rows=keys.rows,
        )
        return ActorOutput(action, memory=memory)


class PerGamePlayers:
    """Answers the rows of whoever is made anew when a game begins."""

    def __init__(self, make: Callable[[int], BatchPlayer], rows: int, seed: int) -> None:
        """Seat nobody yet.

        make: returns the player of a game by its number. rows: of a game.
        """
        self.make, self.rows, self.seed = make, rows, seed
        self._seated: dict[int, BatchPlayer] = {}

    def begin(self, games: Iterable[int] | None = None) -> None:
        """Let games begin anew, all of them if none are given: others will sit there."""
        for game in list(self._seated) if games is None else games:
            self._seated.pop(game, None)

    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
        """Choose an action for every row, in one call for all games of a player."""
        mine: dict[int, list[int]] = {}
        for at, row in enumerate(keys.rows):
            game = int(row) // self.rows
            if game not in self._seated:
                self._seated[game] = self.make(game)
            mine.setdefault(id(self._seated[game]), []).append(at)
        action: npt.NDArray[Any] | None = None
        for places in mine.values():
            player = self._seated[int(keys.rows[places[0]]) // self.rows]
            said = PlayerActor(player, self.seed).act(obs[places], mask[places], keys.of(places))
            if action is None:
                action = np.zeros((len(obs), *said.action.shape[1:]), said.action.dtype)
            action[places] = said.action
        assert action is not None
        return ActorOutput(action)
