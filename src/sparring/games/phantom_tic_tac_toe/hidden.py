"""Hidden information of phantom tic-tac-toe: the other's stones."""

from __future__ import annotations

from typing import Any

from sparring.games.hidden import Hidden, of_others
from sparring.games.rules import Rules

CELLS = tuple(f"{column}{row}" for row in (1, 2, 3) for column in "abc")


def hidden(_: Rules) -> Hidden:
    """Return on which cells the other seat has stones."""

    def read(library: Any, raw: Any, seat: Any) -> Any:
        # Two bytes of a seat: eight cells, then the last one.
        theirs = of_others(library, [raw[:, :2], raw[:, 2:4]], seat)[:, 0]
        bits = [theirs[:, cell // 8] >> cell % 8 & 1 for cell in range(len(CELLS))]
        return library.stack(bits, 1)

    return Hidden("stones", CELLS, ("no stone of theirs", "theirs"), read, dull=0)
