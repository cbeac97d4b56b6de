"""Leduc poker: positions with readable action names."""

from __future__ import annotations

from sparring.games.poker import RANKS, PokerPosition
from sparring.games.state import State

RAISE = 2
MAX_MOVES = 4
"""Moves of one betting round."""


def read(state: State) -> PokerPosition:
    """Return the position; a call without a raise to pay is a check."""
    fields = state.fields()
    first, second, table = (RANKS[int(card) // 2] for card in fields["cards"])
    now = int(fields["round"][0])
    rounds = []
    for at in range(now + 1):
        begin = MAX_MOVES * at
        rounds.append([int(m) for m in fields["moves"][begin : begin + int(fields["length"][at])]])
    actions = tuple(
        tuple(action_name(moves[:i], m) for i, m in enumerate(moves)) for moves in rounds
    )
    choices = tuple((action, action_name(rounds[now], action)) for action in state.legal())
    mine, yours = (int(count) for count in fields["chips"])
    return PokerPosition((first, second), table if now else "", (mine, yours), actions, choices)


def action_name(before: list[int], action: int) -> str:
    """Return the name of an action after these moves of its round."""
    faced = bool(before) and before[-1] == RAISE
    return ("fold", "call" if faced else "check", "raise")[action]
