"""Opponents in the seats of a single `State`, without a pool."""

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

SEATING_KEY = 0x5EA7
"""Key of the random stream that draws seats."""


class StateOpponents:
    """Draws the seats of all players at every start, and plays all seats but those of `self`."""

    def __init__(self, rules: Rules, opponents: Opponents) -> None:
        self.rules = rules
        self._factory = opponents if is_player_factory(opponents) else None
        given = "self" if opponents is None or self._factory else opponents
        self._tables = self._read(given)
        self._loaded: dict[str, Any] = {}
        self._seated = [[self._make_player(who) for who in table.players] for table in self._tables]
        self._players: list[Any] = []
        """By seat: a bot's name, a player, or None for an agent."""
        self._state: State | None = None
        self._num_decisions = 0

    def assign_seats(self, state: State) -> list[int]:
        """Draw the seats by the seed of a new game; return those of the agents."""
        self._state, self._num_decisions = state, 0
        key = np.array([state.seed % 2**64, SEATING_KEY], np.uint64)
        lots = np.random.Generator(np.random.Philox(key=key))
        if self._factory is not None:
            local = LocalGame(self.rules, 0, self._position)
            tables = self._read(call_factory(self._factory, self.rules.seats - 1, local))
            if len(tables) > 1:
                raise ConfigError("opponents: the factory returned several tables; return one")
            players = [self._make_player(who) for who in tables[0].players]
        else:
            weights = np.array([table.weight for table in self._tables])
            players = self._seated[int(lots.choice(len(weights), p=weights / weights.sum()))]
        self._players = [with_memory(players[place]) for place in lots.permutation(len(players))]
        return [seat for seat, player in enumerate(self._players) if player is None]

    def play(self, state: State) -> npt.NDArray[np.float32]:
        """Play opponents until an agent is to act; return the rewards of all seats."""
        paid = np.zeros(self.rules.seats, np.float32)
        while not state.over and all(
            self._players[seat] is not None for seat in state.seats_to_act
        ):
            state.apply(self.fill_actions(state, self._empty_actions()))
            paid += state.rewards
        return paid

    def fill_actions(self, state: State, given: Any) -> Any:
        """Return the actions of all rows: the given ones, and those of opponents."""
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
        self._num_decisions += 1
        if isinstance(player, str):
            return state.ask(player, row)
        return player.action(
            state, row=row, greedy=False, seed=state.seed, step=self._num_decisions
        )

    def _empty_actions(self) -> Any:
        if self.rules.rows == 1:
            return 0
        box = self.rules.box
        return [np.zeros(box, np.float32) if box else 0 for _ in range(self.rules.rows)]

    def _read(self, given: Opponents) -> list[LineupSpec]:
        return tables_of(self.rules, given, learners=range(1, self.rules.seats + 1))

    def _make_player(self, who: PlayerSpec) -> Any:
        return None if who.kind == "self" else resolve_spec(who, self.rules, self._loaded)

    def _position(self) -> State:
        assert self._state is not None
        return self._state.clone()


def with_memory(player: Any) -> Any:
    """Return a player with empty memory for one seat of one game."""
    return player if player is None or isinstance(player, str) else StatefulPlayer(player)
