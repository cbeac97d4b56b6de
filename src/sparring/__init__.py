"""sparring: game-playing agents, trained by self-play at the speed of the hardware."""

from sparring.errors import ConfigError, IllegalActionError, SparringError, StateError
from sparring.games import Rules, State, game_names, load_state, new_state
from sparring.pools import LEARNER, Batch, Lineup, Pool
from sparring.tools.conformance import check

__version__ = "0.1.0"

__all__ = [
    "LEARNER",
    "Batch",
    "ConfigError",
    "IllegalActionError",
    "Lineup",
    "Pool",
    "Rules",
    "SparringError",
    "State",
    "StateError",
    "check",
    "game_names",
    "load_state",
    "new_state",
]
