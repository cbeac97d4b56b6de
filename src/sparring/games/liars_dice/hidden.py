"""Hidden information of liar's dice: the other's dice."""

from __future__ import annotations

from typing import Any

from sparring.games.hidden import Hidden, of_others
from sparring.games.rules import Rules

MAX_DICE = 2
"""Of a seat, in the state."""


def hidden(rules: Rules) -> Hidden:
    """Return the faces of the other seat's dice, the smaller one first."""
    dice, faces = int(rules.config["dice"]), int(rules.config["faces"])

    def read(library: Any, raw: Any, seat: Any) -> Any:
        rolls = raw.reshape(len(raw), 2, MAX_DICE)[:, :, :dice] - 1
        return of_others(library, [rolls[:, 0], rolls[:, 1]], seat)[:, 0]

    items = tuple(f"their die {number}" for number in range(1, dice + 1))
    return Hidden("dice", items, tuple(str(face) for face in range(1, faces + 1)), read)
