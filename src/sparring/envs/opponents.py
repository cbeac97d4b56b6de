"""Who sits in the other seats of an environment: words, policies, functions, or what makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sparring.envs.illegal import GOLDEN, mixed
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
    """One game of an environment, for players that want to look at the table they sit at."""

    def __init__(self, rules: Rules, index: int, look: Callable[[], State]) -> None:
        self.rules, self.index = rules, index
        self._look = look

    def __repr__(self) -> str:
        return f"LocalGame({self.rules.name!r}, {self.index})"

    def position(self) -> State:
        """Return a copy of the position, hidden parts included.

        Ask when a decision is due: while a factory runs, the next game is not dealt yet.
        """
        return self._look()


class Company:
    """The players beside the learner: the line-ups to draw from, and who answers which rows."""

    def __init__(self, rules: Rules, given: Opponents, *, games: int, first_game: int) -> None:
        self.rules = rules
        self.factory: PlayerFactory | None = given if is_player_factory(given) else None
        self.seated: dict[int, BatchPlayer] = {}
        """Who answers rows, by policy id."""
        self._loaded: dict[str, Any] = {}
        self._drawn: list[Lineup | None] = [None] * games
        tables = tables_of(rules, None if self.factory else given)
        self.lineups = [self.lineup(table) for table in tables]
        self.names = sorted({who.name for t in tables for who in t.players if who.kind != "self"})
        """Of everybody who may sit there."""
        self._index = np.arange(first_game, first_game + games, dtype=np.uint64)
        self._memory = np.zeros((games, rules.seats, 0), np.uint8)
        """What players remember, [games, seats, bytes]; each has the first of its seat's."""
        self.restart(0)

    @property
    def answers(self) -> bool:
        """Whether rows have to be answered; the pools play bots by themselves."""
        return bool(self.seated) or self.factory is not None

    def restart(self, seed: int) -> None:
        """Begin with the chances of a seed."""
        self._seed, self._calls = seed, 0
        self._asked = np.zeros(len(self._index), np.uint64)

    def forget(self, games: npt.NDArray[Any]) -> None:
        """Let nobody remember anything of these games: they begin anew."""
        self._memory[games] = 0

    def draw(self, game: int, local: LocalGame) -> Lineup:
        """Ask the factory who plays the next episode of a game."""
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
        """Return a table as pools take it."""
        return Lineup(tuple(map(self._player, table.players)), table.weight, table.shuffle)

    def answer(
        self,
        rows_of: Callable[[str], npt.NDArray[Any]],
        games: npt.NDArray[np.intp],
        actions: npt.NDArray[Any],
    ) -> None:
        """Answer the rows of these games that are not the learner's: one batch per player.

        rows_of: gives an array of all rows by its name.
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
            at = (mine // count, seat[mine], slice(self._room(player.memory_bytes)))
            how: dict[str, Any] = {"seed": self._seed, "step": step, "rows": self._numbers(mine)}
            actions[mine], self._memory[at] = player.decide(
                obs[mine], mask[mine], self._memory[at], **how
            )
        self._asked[games] += np.uint64(1)

    def _room(self, size: int) -> int:
        """Make room for so many bytes of every seat: a factory may bring anybody at any time."""
        games, seats, known = self._memory.shape
        if size > known:
            more = np.zeros((games, seats, size - known), np.uint8)
            self._memory = np.concatenate([self._memory, more], axis=2)
        return size

    def _numbers(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
        """Number decisions by game and how many came before, whichever others are asked too."""
        count = self.rules.rows
        own = self._index[rows // count] * np.uint64(count) + (rows % count).astype(np.uint64)
        return mixed(mixed(own * GOLDEN) + self._asked[rows // count]) & np.uint64(2**32 - 1)

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
    """Read what `opponents=` was given.

    learners: how many seats of a table may be the learner's.
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
    """Whether an element of a list is a table by itself, and not the player of one seat."""
    if isinstance(word, str):
        return "=" in word or "," in word
    return isinstance(word, list | tuple)
