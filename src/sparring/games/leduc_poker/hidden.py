"""Hidden information of Leduc poker: the other's card, and the table's before it is turned."""

from __future__ import annotations

from typing import Any

from sparring.games.hidden import Hidden
from sparring.games.rules import Rules


def hidden(rules: Rules) -> Hidden:
    """Return the ranks of the other seat's card and of the table's."""

    def read(library: Any, raw: Any, seat: Any) -> Any:
        theirs = raw[:, 1] * (seat == 0) + raw[:, 0] * (seat == 1)
        return library.stack([theirs, raw[:, 2]], 1) // 2

    return Hidden("cards", ("their card", "the table's card"), ("jack", "queen", "king"), read)
