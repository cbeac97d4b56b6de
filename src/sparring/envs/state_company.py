"""Others in the seats of one single game, which has no pool to play it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.envs.opponents import LocalGame, Opponents, tables_of
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.league.players import call_factory, is_player_factory
from sparring.league.seating import LineupSpec, PlayerSpec, resolve_spec
from sparring.nets.stateful_player import StatefulPlayer

LOTS = 0x5EA7
"""Keeps the drawing of seats apart from everything else that a seed decides."""


class StateCompany:
    """Draws who sits where at every start, and answers for all seats but those of `self`."""

    def __init__(self, rules: Rules, opponents: Opponents) -> None:
        self.rules = rules
        self._factory = opponents if is_player_factory(opponents) else None
        given = "self" if opponents is None or self._factory else opponents
        self._tables = self._read(given)
        self._loaded: dict[str, Any] = {}
        self._seated = [[self._sit(who) for who in table.players] for table in self._tables]
        self._players: list[Any] = []
        """Of each seat: a bot's name, whoever answers and remembers, or None: ours."""
        self._state: State | None = None
        self._asked = 0

    def sit_down(self, state: State) -> list[int]:
        """Draw who sits where, from the seed of a game that begins; return the seats of ours."""
        self._state, self._asked = state, 0
        key = np.array([state.seed % 2**64, LOTS], np.uint64)
        lots = np.random.Generator(np.random.Philox(key=key))
        if self._factory is not None:
            local = LocalGame(self.rules, 0, self._position)
            tables = self._read(call_factory(self._factory, self.rules.seats - 1, local))
            if len(tables) > 1:
                raise ConfigError("opponents: the factory returned several tables; return one")
            players = [self._sit(who) for who in tables[0].players]
        else:
            weights = np.array([table.weight for table in self._tables])
            players = self._seated[int(lots.choice(len(weights), p=weights / weights.sum()))]
        self._players = [at_table(players[place]) for place in lots.permutation(len(players))]
        return [seat for seat, player in enumerate(self._players) if player is None]

    def play(self, state: State) -> npt.NDArray[np.float32]:
        """Let the others decide until a seat of ours has to; return what all seats were paid."""
        paid = np.zeros(self.rules.seats, np.float32)
        while not state.over and all(
            self._players[seat] is not None for seat in state.seats_to_act
        ):
            state.apply(self.filled(state, self._nothing()))
            paid += state.rewards
        return paid

    def filled(self, state: State, given: Any) -> Any:
        """Return the actions of all rows: those given, and those of the others."""
        if self.rules.rows == 1:
            player = self._players[state.seat] if not state.over else None
            return given if player is None else self._answer(state, player, 0)
        rows = list(given)
        for row in range(self.rules.rows):
            seat = state.native.seat(row)
            if seat >= 0 and self._players[seat] is not None:
                rows[row] = self._answer(state, self._players[seat], row)
        return np.asarray(rows)

    def _answer(self, state: State, player: Any, row: int) -> Any:
        self._asked += 1
        if isinstance(player, str):
            return state.ask(player, row)
        return player.action(state, row=row, greedy=False, seed=state.seed, step=self._asked)

    def _nothing(self) -> Any:
        if self.rules.rows == 1:
            return 0
        box = self.rules.box
        return [np.zeros(box, np.float32) if box else 0 for _ in range(self.rules.rows)]

    def _read(self, given: Opponents) -> list[LineupSpec]:
        return tables_of(self.rules, given, learners=range(1, self.rules.seats + 1))

    def _sit(self, who: PlayerSpec) -> Any:
        return None if who.kind == "self" else resolve_spec(who, self.rules, self._loaded)

    def _position(self) -> State:
        assert self._state is not None
        return self._state.clone()


def at_table(player: Any) -> Any:
    """Somebody in one seat for one game: who answers rows remembers nothing yet."""
    return player if player is None or isinstance(player, str) else StatefulPlayer(player)
