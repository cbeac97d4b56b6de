"""Hidden information of Leduc poker: the other's card, and the table's before it is turned."""

from __future__ import annotations

from typing import Any

from sparring.games.hidden import Hidden, of_others
from sparring.games.rules import Rules

RANKS = ("jack", "queen", "king")


def hidden(_: Rules) -> Hidden:
    """Return the ranks of the other seat's card and of the table's."""

    def read(library: Any, raw: Any, seat: Any) -> Any:
        ranks = raw // 2
        theirs = of_others(library, [ranks[:, :1], ranks[:, 1:2]], seat)[:, 0, 0]
        return library.stack([theirs, ranks[:, 2]], 1)

    return Hidden("cards", ("their card", "the table's card"), RANKS, read)
