"""Shogi in a mirror: left and right of the board are exchanged, file 1 for file 9.

Pieces move alike to both sides, and both seats see the board from their own end, so that the image
is the same for both. No flag breaks this. The start is not its own image (rook and bishop): images
are positions that could be played, but a game from the start seldom comes near them.
"""

from __future__ import annotations

from sparring.games.mirror import Mirror
from sparring.games.rules import Rules
from sparring.games.shogi import SQUARES, mirrored_action, mirrored_square


def mirror(rules: Rules) -> Mirror:
    """For both kinds of observation: planes of 81 squares change places, other numbers stay."""
    features: list[int] = []
    for block in rules.blocks:
        squares = len(block.columns) == SQUARES
        features += [
            block.first + (mirrored_square(i) if squares else i) for i in range(len(block.columns))
        ]
    actions = tuple(mirrored_action(action) for action in range(rules.actions))
    return Mirror(tuple(features), (1,) * len(features), actions)
