"""Tic-tac-toe in a mirror: columns a and c are exchanged."""

from __future__ import annotations

from sparring.games.mirror import Mirror
from sparring.games.rules import Rules

CELLS = (2, 1, 0, 5, 4, 3, 8, 7, 6)


def mirror(rules: Rules) -> Mirror:
    """Features: stones of the seat, stones of the other, and the turn, which stays."""
    features = (*CELLS, *(9 + cell for cell in CELLS), 18)
    return Mirror(features, (1,) * len(rules.features), CELLS)
