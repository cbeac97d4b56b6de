"""Leduc poker for people: its words, its terminal, its picture, and how it is trained."""

from __future__ import annotations

from sparring.games.poker import RANKS, PokerPosition
from sparring.games.state import State

RAISE = 2
MAX_MOVES = 4
"""Of a round."""


def read(state: State) -> PokerPosition:
    """Return a position in words: a call is a check where there is nothing to pay."""
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
    """Return what an action is called after these moves of its round."""
    faced = bool(before) and before[-1] == RAISE
    return ("fold", "call" if faced else "check", "raise")[action]
