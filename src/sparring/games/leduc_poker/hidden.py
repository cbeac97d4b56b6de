"""Hidden information of Leduc poker: the other's card. The table's is chance."""

from __future__ import annotations

from typing import Any

from sparring.games.hidden import Hidden, of_others
from sparring.games.rules import Rules

RANKS = ("jack", "queen", "king")


def hidden(_: Rules) -> Hidden:
    """Return the rank of the other seat's card."""

    def read(library: Any, raw: Any, seat: Any) -> Any:
        return of_others(library, [raw[:, :1] // 2, raw[:, 1:2] // 2], seat)[:, 0]

    return Hidden("cards", ("their card",), RANKS, read)
