"""Levels of play: how far a policy searches, and how freely it draws its actions."""

from __future__ import annotations

from typing import NamedTuple


class Level(NamedTuple):
    """Strength of play, from the weakest on."""

    simulations: int
    """Of the search at every decision; 0: the network alone."""
    temperature: float
    """The policy's probabilities to the power of 1 / temperature; 0: its most probable action."""


LEVELS = {
    1: Level(0, 4.0),
    2: Level(0, 2.0),
    3: Level(0, 1.0),
    4: Level(0, 0.0),
    5: Level(4, 0.0),
    6: Level(16, 0.0),
    7: Level(64, 0.0),
    8: Level(256, 0.0),
    9: Level(800, 0.0),
}
"""By number; docs/guides/opponents.md has what each wins against the one below."""
