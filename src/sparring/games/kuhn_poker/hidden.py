"""Hidden information of Kuhn poker: the other seat's card."""

from __future__ import annotations

from typing import Any

from sparring.games.hidden import Hidden
from sparring.games.rules import Rules


def hidden(rules: Rules) -> Hidden:
    """Return the other seat's card."""

    def read(library: Any, raw: Any, seat: Any) -> Any:
        return (raw[:, 1] * (seat == 0) + raw[:, 0] * (seat == 1))[:, None]

    return Hidden("cards", ("their card",), ("jack", "queen", "king"), read)
