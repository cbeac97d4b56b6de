"""Connect Four in a mirror: columns a and g, b and f, c and e are exchanged."""

from __future__ import annotations

from sparring.games.mirror import Mirror
from sparring.games.rules import Rules

COLUMNS = (6, 5, 4, 3, 2, 1, 0)
CELLS = tuple(7 * row + column for row in range(6) for column in COLUMNS)


def mirror(rules: Rules) -> Mirror:
    """Return the mirror image of cells and moves; whose turn it is stays."""
    features = (*CELLS, *(len(CELLS) + cell for cell in CELLS), 2 * len(CELLS))
    return Mirror(features, (1,) * len(rules.features), COLUMNS)
