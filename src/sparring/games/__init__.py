"""The games: their rules, names, single states and views."""

from sparring.games.features import Block, Feature
from sparring.games.rules import Field, Rules, game_names
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
