"""Hidden information of Goofspiel: the cards that the other has bid."""

from __future__ import annotations

from typing import Any

from sparring.games.hidden import Hidden, of_others
from sparring.games.rules import Rules

MAX_CARDS = 5
"""Of a hand, in the state."""


def hidden(rules: Rules) -> Hidden:
    """Return the card that the other seat has bid for every prize."""
    cards = int(rules.config["cards"])

    def read(library: Any, raw: Any, seat: Any) -> Any:
        bids = raw.reshape(len(raw), 2, MAX_CARDS)[:, :, :cards]
        return of_others(library, [bids[:, 0], bids[:, 1]], seat)[:, 0]

    items = tuple(f"round {number}" for number in range(1, cards + 1))
    names = ("no card yet", *(str(card) for card in range(1, cards + 1)))
    return Hidden("bids", items, names, read, dull=0)
