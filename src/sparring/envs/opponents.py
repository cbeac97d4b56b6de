"""Opponents of an environment: names, policies, functions, or factories of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sparring.envs.illegal import GOLDEN, splitmix64
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.league.players import (
    BatchPlayer,
    CallablePlayer,
    PlayerFactory,
    call_factory,
    is_player_factory,
)
from sparring.league.seating import LineupSpec, PlayerSpec, is_weighted, read_lineups, resolve_spec
from sparring.nets.roots import Roots
from sparring.pools import LEARNER, Lineup
from sparring.pools.lineups import PlayerId

Opponents: TypeAlias = Any
"""What `opponents=` takes; None: random.

A player (a word for a bot, a run, a checkpoint or a saved policy; a policy, an agent, a function
`(obs, mask, rng) -> actions`) for all other seats; a list with one each; or a list of such tables,
with weights: ["captain=2", (policy, 1)]. A function of no argument or of two is a factory: it is
called at every reset, with the number of other seats and the `LocalGame`, and returns any of these.
"""


class LocalGame:
    """One game of an environment, for players that read its state."""

    def __init__(self, rules: Rules, index: int, read_state: Callable[[], State]) -> None:
        self.rules, self.index = rules, index
        self._read_state = read_state

    def __repr__(self) -> str:
        return f"LocalGame({self.rules.name!r}, {self.index})"

    def position(self) -> State:
        """Return a copy of the state, hidden information included.

        Call it in a decision: while a factory runs, the next game is not dealt yet.
        """
        return self._read_state()


class OpponentGroup:
    """The learner's opponents: the line-ups to draw from, and the players of rows."""

    def __init__(self, rules: Rules, given: Opponents, *, games: int, first_game: int) -> None:
        self.rules = rules
        self.factory: PlayerFactory | None = given if is_player_factory(given) else None
        self.seated: dict[int, BatchPlayer] = {}
        """Players that act here, by policy id."""
        self._loaded: dict[str, Any] = {}
        self._drawn: list[Lineup | None] = [None] * games
        tables = tables_of(rules, None if self.factory else given)
        self.lineups = [self.lineup(table) for table in tables]
        self.names = sorted({who.name for t in tables for who in t.players if who.kind != "self"})
        """Names of all opponents."""
        self._index = np.arange(first_game, first_game + games, dtype=np.uint64)
        self._memory = np.zeros((games, rules.seats, 0), np.uint8)
        """Memory of players [games, seats, bytes]; each uses the first bytes of its seat's."""
        self.restart(0)

    @property
    def answers(self) -> bool:
        """Whether players act here; bots act in the pools."""
        return bool(self.seated) or self.factory is not None

    def restart(self, seed: int) -> None:
        """Restart the random stream with a seed."""
        self._seed, self._calls = seed, 0
        self._num_decisions = np.zeros(len(self._index), np.uint64)

    def reset_memory(self, games: npt.NDArray[Any]) -> None:
        """Clear the memory of games that start anew."""
        self._memory[games] = 0

    def draw(self, game: int, local: LocalGame) -> Lineup:
        """Call the factory for the players of a game's next episode."""
        assert self.factory is not None
        (table, *more) = tables_of(
            self.rules, call_factory(self.factory, self.rules.seats - 1, local)
        )
        if more:
            raise ConfigError(
                f"opponents: the factory returned {len(more) + 1} tables; return one, drawn by you"
            )
        self._drawn[game] = lineup = self.lineup(table)
        used = {player for drawn in self._drawn if drawn for player in drawn.players}
        self.seated = {number: who for number, who in self.seated.items() if number in used}
        return lineup

    def lineup(self, table: LineupSpec) -> Lineup:
        """Return the line-up of a table."""
        return Lineup(tuple(map(self._player, table.players)), table.weight, table.shuffle)

    def answer(
        self,
        rows_of: Callable[[str], npt.NDArray[Any]],
        roots_of: Callable[[npt.NDArray[np.intp]], Roots],
        games: npt.NDArray[np.intp],
        actions: npt.NDArray[Any],
    ) -> None:
        """Play the rows of these games that are not the learner's: one batch per player.

        rows_of: returns an array of all rows by its name. roots_of: returns the positions of rows.
        """
        policy, obs, mask, seat = map(rows_of, ("policy", "obs", "mask", "seat"))
        count = self.rules.rows
        rows = (games[:, None] * count + np.arange(count)).ravel()
        rows = rows[policy[rows] > LEARNER]
        for number in np.unique(policy[rows]):
            mine = rows[policy[rows] == number]
            player = self.seated[int(number)]
            step = 0
            if isinstance(player, CallablePlayer):  # its rows have no numbers, only its calls have
                step = self._calls
                self._calls += 1
            at = (mine // count, seat[mine], slice(self._grow_memory(player.memory_bytes)))
            how: dict[str, Any] = {
                "seed": self._seed,
                "step": step,
                "rows": self._decision_keys(mine),
                "roots": roots_of(mine),
            }
            actions[mine], self._memory[at] = player.decide(
                obs[mine], mask[mine], self._memory[at], **how
            )
        self._num_decisions[games] += np.uint64(1)

    def _grow_memory(self, size: int) -> int:
        """Grow the memory of every seat to this size: a factory may return any player."""
        games, seats, known = self._memory.shape
        if size > known:
            more = np.zeros((games, seats, size - known), np.uint8)
            self._memory = np.concatenate([self._memory, more], axis=2)
        return size

    def _decision_keys(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
        """Return a key per decision by game and count, independent of other games."""
        count = self.rules.rows
        own = self._index[rows // count] * np.uint64(count) + (rows % count).astype(np.uint64)
        return splitmix64(
            splitmix64(own * GOLDEN) + self._num_decisions[rows // count]
        ) & np.uint64(2**32 - 1)

    def _player(self, who: PlayerSpec) -> PlayerId:
        if who.kind == "self":
            return LEARNER
        player = resolve_spec(who, self.rules, self._loaded)
        if isinstance(player, str):
            return player
        function = getattr(player, "function", player)
        for number, known in self.seated.items():
            if getattr(known, "function", known) is function:
                return number
        number = next(n for n in range(1, len(self.seated) + 2) if n not in self.seated)
        self.seated[number] = player
        return number


def tables_of(
    rules: Rules, given: Opponents, *, learners: Iterable[int] = (1,)
) -> list[LineupSpec]:
    """Read the argument `opponents=`.

    learners: allowed numbers of learner seats.
    """
    if given is None or (rules.seats == 1 and isinstance(given, Sequence) and not len(given)):
        given = "random" if rules.seats > 1 else "self"
    alone = isinstance(given, str) or not isinstance(given, Sequence) or is_weighted(given)
    words = [given] if alone or not any(map(is_table, given)) else given
    tables = read_lineups(rules, words)
    allowed = tuple(learners)
    for table in tables:
        selves = sum(who.kind == "self" for who in table.players)
        if selves not in allowed:
            raise ConfigError(
                f"opponents: {selves} seats are self, and this environment has one learner; name "
                "the others, or use sparring.envs.pettingzoo, which has an agent per seat"
            )
    return tables


def is_table(word: Any) -> bool:
    """Whether an element of a list is a whole table, not the player of one seat."""
    if isinstance(word, str):
        return "=" in word or "," in word
    return isinstance(word, list | tuple)
