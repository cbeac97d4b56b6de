"""One game between players, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sparring.games import Rules, State, new_state
from sparring.league.players import Player
from sparring.nets.stateful_player import StatefulPlayer


def play_one(
    rules: Rules,
    players: Sequence[Player],
    seed: int,
    *,
    sampled: bool,
    on_actions: Callable[[Any], None] = lambda _: None,
) -> Iterator[State]:
    """Yield the start of a game, and the state after each step; `on_actions` gets the actions."""
    state = new_state(rules, seed=seed)
    seat_players = [one if isinstance(one, str) else StatefulPlayer(one) for one in players]
    yield state.clone()
    decision = 0
    while not state.over:
        actions = []
        for row in range(rules.rows):
            actions.append(answer(seat_players, state, row, sampled=sampled, step=decision))
            decision += 1
        state.apply(np.stack(actions))
        on_actions(np.stack(actions))
        yield state.clone()


def answer(
    players: Sequence[StatefulPlayer | str], state: State, row: int, *, sampled: bool, step: int
) -> Any:
    """Return the action of a row. step: seeds the sampling of a policy."""
    seat = state.native.seat(row)
    if seat < 0:  # this row has nothing to decide
        return np.zeros(state.rules.box) if state.rules.box else 0
    player = players[seat]
    if isinstance(player, str):
        return state.ask(player, row)
    return player.action(state, row=row, greedy=not sampled, seed=state.seed, step=step)
