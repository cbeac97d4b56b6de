"""The games: their rules, names, single states and views."""

from sparring.games.features import Feature, FeatureBlock
from sparring.games.rules import Field, Rules, game_names
from sparring.games.state import State, load_state, new_state

__all__ = [
    "Feature",
    "FeatureBlock",
    "Field",
    "Rules",
    "State",
    "game_names",
    "load_state",
    "new_state",
]
