"""Actors: choose actions for the learner, frozen opponents in slots, and other players."""

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
from sparring.nets.frozen.cpu import GroupedHierarchy, GroupedNet
from sparring.nets.heads import MEMORY, POLICY, head_width
from sparring.nets.net import HeadOutputs
from sparring.nets.sampling import ActionSampler, unsquash_actions
from sparring.nets.stateful_player import BatchPlayer, rows_read_by
from sparring.phases import phase
from sparring.pools.custom.base import CustomPool
from sparring.pools.lineups import Mixes
from sparring.pools.native import Pool
from sparring.pools.protocol import GamePool

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class RngKeys:
    """Keys of the random numbers of some rows, independent of how rows are batched."""

    rollout: int
    step: int | npt.NDArray[np.intp]
    """Of all rows, or of each: groups of games may be at different steps."""
    rows: npt.NDArray[np.intp]

    @property
    def one_step(self) -> int:
        assert isinstance(self.step, int)
        return self.step

    def draw(
        self, sampler: ActionSampler, head: Tensor, mask: Bytes, **how: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Return sampled actions and log-probabilities. how: see `ActionSampler.draw`."""
        where: dict[str, Any] = {"rollout": self.rollout, "step": self.step, "rows": self.rows}
        return sampler.draw(head, mask, **where, **how)

    def select(self, rows: Any) -> RngKeys:
        step = self.step if isinstance(self.step, int) else self.step[rows]
        return RngKeys(self.rollout, step, self.rows[rows])


@dataclass(frozen=True)
class ActorOutput:
    """Actions of some rows."""

    action: npt.NDArray[Any]
    """The learner's as sampled, before bounds or squashing; others' as games take them."""
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """Columns that the learner stores, such as "log_prob"."""
    memory: Bytes | None = None
    """New memory of each row's seat, its first bytes [rows, bytes]."""


class Actor(Protocol):
    """Acts for one policy."""

    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
        """Choose an action for every row."""


@runtime_checkable
class PerGameActor(Protocol):
    """An actor that makes a player for every game."""

    def begin(self, games: Iterable[int] | None = None) -> None:
        """Reset games, by their index in the run; None: all."""


@runtime_checkable
class PoolActor(Protocol):
    """An actor whose players may search, and so need the games behind their rows."""

    def join(self, pool: GamePool, first_row: int) -> None:
        """Take note of the games. first_row: index of the pool's first row among all pools."""


@runtime_checkable
class AdjustableActor(Protocol):
    """An actor whose learner changes its settings between rollouts, such as its epsilon.

    They travel to processes that play for the learner, which have such an actor, too.
    """

    def settings(self) -> dict[str, npt.NDArray[Any]]:
        """Return all settings as arrays, whose first index may be the game in the run."""

    def adjust(self, settings: Mapping[str, npt.NDArray[Any]]) -> None:
        """Use `settings` of another actor of the same run."""


@runtime_checkable
class CountingActor(Protocol):
    """An actor that counts its work, for metrics of its rollouts."""

    counted: tuple[str, ...]
    """Names of metrics."""

    def pop_counts(self) -> tuple[int, ...]:
        """Return the counts since the last call, one per name."""


class GroupedActor(Protocol):
    """Acts for several policies in one batch."""

    slots: int
    """Acts for policies 1 to this one."""

    def act(
        self, obs: Bytes, mask: Bytes, slot: npt.NDArray[np.int16], keys: RngKeys
    ) -> ActorOutput:
        """Choose an action for every row. slot: its policy."""


class Exploring:
    """Epsilon-greedy actor of the learner; the greedy part may be sampling."""

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

        greedy: take the best action, else sample from the policy head.
        keep: returns columns to store, from the outputs of heads and masks.
        """
        self.forward, self.rules, self.greedy, self.keep = forward, rules, greedy, keep
        self.sampler = ActionSampler(seed)
        self.epsilon = np.zeros(0, np.float32)
        """By game, or one entry for all."""

    def set_epsilon(self, epsilon: float | npt.NDArray[np.float32]) -> None:
        """Set the probability of a random action, for all games or for each."""
        self.epsilon = np.atleast_1d(np.asarray(epsilon, np.float32))

    def settings(self) -> dict[str, npt.NDArray[Any]]:
        return {"epsilon": self.epsilon}

    def adjust(self, settings: Mapping[str, npt.NDArray[Any]]) -> None:
        self.set_epsilon(settings["epsilon"])

    @torch.no_grad()
    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
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


class Noisy:
    """Actor of TD3: the actions of the policy with Gaussian noise, cut off at the bounds."""

    def __init__(self, forward: Forward, rules: Rules, seed: int) -> None:
        self.forward, self.rules, self.sampler = forward, rules, ActionSampler(seed)
        self.noise = 0.0
        """Standard deviation."""
        self.random = False
        """Whether all actions are random."""

    def settings(self) -> dict[str, npt.NDArray[Any]]:
        return {"noise": np.array([self.noise]), "random": np.array([self.random])}

    def adjust(self, settings: Mapping[str, npt.NDArray[Any]]) -> None:
        self.noise, self.random = float(settings["noise"][0]), bool(settings["random"][0])

    @torch.no_grad()
    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
        standard = torch.zeros(len(obs), head_width(self.rules))
        if self.random:
            everywhere = np.ones(len(obs), np.float32)
            action, _ = keys.draw(self.sampler, standard, mask, epsilon=everywhere, squash=True)
            return ActorOutput(action, memory=self.forward.memory(obs, {POLICY: standard}))
        heads = self.forward(torch.from_numpy(obs))
        noise, _ = keys.draw(self.sampler, standard, mask)
        mean = heads[POLICY].float()[:, : self.rules.box].cpu().numpy()
        played = np.clip(np.tanh(mean) + self.noise * noise, -1.0, 1.0)
        action = unsquash_actions(played.astype(np.float32), squash=True)
        return ActorOutput(action, memory=self.forward.memory(obs, heads))


@runtime_checkable
class TakesOpponents(Learner, Protocol):
    """A learner with slots for frozen networks, which act in one batch.

    Slot k has policy id k, from 1 on; id 0 is the learner. A slot may be reloaded while no running
    game seats its policy.
    """

    @property
    def slots(self) -> int:
        """Number of slots."""

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        """Load the weights of a frozen network, of the learner's architecture, into a slot."""

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        """Set the policies in every mix, for games that begin."""

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats of each policy id in running games [slots + 1]."""


def check_slot(slot: int, slots: int) -> None:
    if not 1 <= slot <= slots:
        raise ConfigError(f"slot {slot} is outside 1..{slots}")


class SlotActor:
    """Acts for all slots in one grouped forward pass."""

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
        if not self.filled[slot].all():
            empty = int(slot[~self.filled[slot]][0])
            raise ConfigError(f"policy {empty} has seats in games and its slot is empty")
        outputs = self.net.forward(torch.from_numpy(obs), slot)
        heads, memory = outputs[POLICY], outputs.get(MEMORY)
        action, _ = keys.draw(self.sampler, heads, mask)
        greedy_rows = np.flatnonzero(self.greedy[slot])
        if len(greedy_rows):
            action[greedy_rows], _ = keys.select(greedy_rows).draw(
                self.sampler, heads[greedy_rows], mask[greedy_rows], greedy=True
            )
        return ActorOutput(action, memory=None if memory is None else bytes_of(memory))


class PlayerActor:
    """Acts for one player without a slot: another network, one that searches, or a function."""

    def __init__(self, player: BatchPlayer, seed: int, *, greedy: bool = False) -> None:
        self.player, self.seed, self.greedy = player, seed, greedy
        self.pool: Pool | CustomPool | None = None
        """Games of the rows, for a player that searches."""
        self.first_row = 0

    def join(self, pool: GamePool, first_row: int) -> None:
        self.pool = pool if isinstance(pool, Pool | CustomPool) else None
        self.first_row = first_row

    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
        action, memory = self.player.decide(
            rows_read_by(self.player, obs),
            mask,
            greedy=self.greedy,
            seed=self.seed,
            rollout=keys.rollout,
            step=keys.one_step,
            rows=keys.rows,
            roots=[(self.pool, keys.rows - self.first_row)] if self.pool else None,
        )
        return ActorOutput(action, memory=memory)


class PerGamePlayers:
    """Acts for players that are made when a game begins."""

    def __init__(self, make: Callable[[int], BatchPlayer], rows: int, seed: int) -> None:
        """Make no player yet. make: returns the player of a game by its index. rows: of a game."""
        self.make, self.rows, self.seed = make, rows, seed
        self._seated: dict[int, BatchPlayer] = {}
        self._games: tuple[GamePool, int] | None = None

    def join(self, pool: GamePool, first_row: int) -> None:
        self._games = pool, first_row

    def begin(self, games: Iterable[int] | None = None) -> None:
        for game in list(self._seated) if games is None else games:
            self._seated.pop(game, None)

    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
        rows_of_player: dict[int, list[int]] = {}
        for at, row in enumerate(keys.rows):
            game = int(row) // self.rows
            if game not in self._seated:
                self._seated[game] = self.make(game)
            rows_of_player.setdefault(id(self._seated[game]), []).append(at)
        action: npt.NDArray[Any] | None = None
        for places in rows_of_player.values():
            player = self._seated[int(keys.rows[places[0]]) // self.rows]
            actor = PlayerActor(player, self.seed)
            if self._games:
                actor.join(*self._games)
            outputs = actor.act(obs[places], mask[places], keys.select(places))
            if action is None:
                action = np.zeros((len(obs), *outputs.action.shape[1:]), outputs.action.dtype)
            action[places] = outputs.action
        assert action is not None
        return ActorOutput(action)
