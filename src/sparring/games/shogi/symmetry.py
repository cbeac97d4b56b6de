"""Shogi in a mirror: left and right of the board are exchanged, file 1 for file 9.

Moves are symmetric, and both seats see the board from their side, so both have the same mirror.
The symmetry holds with all flags. The start is not symmetric (rook and bishop): images are legal
positions, but games from the start seldom reach them.
"""

from __future__ import annotations

from sparring.games.mirror import Mirror
from sparring.games.rules import Rules
from sparring.games.shogi import SQUARES, mirrored_action, mirrored_square


def mirror(rules: Rules) -> Mirror:
    """Return the mirror: planes of 81 squares are mirrored, other features stay."""
    features: list[int] = []
    for block in rules.blocks:
        squares = len(block.columns) == SQUARES
        features += [
            block.first + (mirrored_square(i) if squares else i) for i in range(len(block.columns))
        ]
    actions = tuple(mirrored_action(action) for action in range(rules.actions))
    return Mirror(tuple(features), (1,) * len(features), actions)
