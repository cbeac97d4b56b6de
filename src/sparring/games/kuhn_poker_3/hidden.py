"""Hidden information of Kuhn poker for three: the cards of the others."""

from __future__ import annotations

from typing import Any

from sparring.games.hidden import Hidden, of_others
from sparring.games.rules import Rules

RANKS = ("jack", "queen", "king", "ace")


def hidden(rules: Rules) -> Hidden:
    """Return the card of every other seat, relative to the observer."""

    def read(library: Any, raw: Any, seat: Any) -> Any:
        cards = [raw[:, one : one + 1] for one in range(rules.seats)]
        return of_others(library, cards, seat)[..., 0]

    return Hidden("cards", ("1 to the left", "2 to the left"), RANKS, read)
