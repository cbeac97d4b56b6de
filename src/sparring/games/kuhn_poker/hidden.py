"""Hidden information of Kuhn poker: the other's card."""

from __future__ import annotations

from typing import Any

from sparring.games.hidden import Hidden, of_others
from sparring.games.rules import Rules

RANKS = ("jack", "queen", "king")


def hidden(_: Rules) -> Hidden:
    """Return the card of the other seat."""

    def read(library: Any, raw: Any, seat: Any) -> Any:
        return of_others(library, [raw[:, :1], raw[:, 1:2]], seat)[:, 0]

    return Hidden("cards", ("their card",), RANKS, read)
