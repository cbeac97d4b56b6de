"""Kuhn poker: positions with readable action names."""

from __future__ import annotations

from sparring.games.poker import RANKS, PokerPosition
from sparring.games.state import State

BET = 1


def read(state: State) -> PokerPosition:
    """Return the position; actions are check, bet, fold and call."""
    fields = state.fields()
    first, second = (RANKS[int(card)] for card in fields["cards"])
    moves = [int(move) for move in fields["moves"][: int(fields["length"][0])]]
    actions = tuple(action_name(moves[:at], move) for at, move in enumerate(moves))
    choices = tuple((action, action_name(moves, action)) for action in state.legal())
    mine, yours = (int(count) for count in fields["chips"])
    return PokerPosition((first, second), "", (mine, yours), (actions,), choices)


def action_name(before: list[int], action: int) -> str:
    """Return the name of an action after these moves."""
    faced = bool(before) and before[-1] == BET
    return (("check", "bet"), ("fold", "call"))[faced][action]
