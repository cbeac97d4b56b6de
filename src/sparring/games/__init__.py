"""The games: their rules, names, single states and views."""

from sparring.games.rules import Block, Feature, Field, Rules, game_names
from sparring.games.state import State, load_state, new_state

__all__ = [
    "Block",
    "Feature",
    "Field",
    "Rules",
    "State",
    "game_names",
    "load_state",
    "new_state",
]
