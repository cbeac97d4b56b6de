"""sparring: game-playing agents, trained by self-play at the speed of the hardware."""

from typing import TYPE_CHECKING, Any

from sparring.errors import ConfigError, IllegalActionError, SparringError, StateError
from sparring.games import Rules, State, game_names, load_state, new_state
from sparring.pools import LEARNER, Batch, Lineup, Pool
from sparring.tools.conformance import check

if TYPE_CHECKING:
    from sparring.nets.policy import Policy as Policy
    from sparring.store.policies import load_policy as load
    from sparring.training.agent import Agent as Agent
    from sparring.training.agent import resume as resume
    from sparring.training.agent import train as train

__version__ = "0.1.0"

__all__ = [
    "LEARNER",
    "Agent",
    "Batch",
    "ConfigError",
    "IllegalActionError",
    "Lineup",
    "Policy",
    "Pool",
    "Rules",
    "SparringError",
    "State",
    "StateError",
    "check",
    "game_names",
    "load",
    "load_state",
    "new_state",
    "resume",
    "train",
]

_LEARNING = {
    "Agent": ("sparring.training.agent", "Agent"),
    "Policy": ("sparring.nets.policy", "Policy"),
    "load": ("sparring.store.policies", "load_policy"),
    "resume": ("sparring.training.agent", "resume"),
    "train": ("sparring.training.agent", "train"),
}


def __getattr__(name: str) -> Any:
    """Load what needs torch only when it is asked for."""
    if name not in _LEARNING:
        raise AttributeError(f"module 'sparring' has no attribute {name!r}")
    import importlib

    module, attribute = _LEARNING[name]
    return getattr(importlib.import_module(module), attribute)
