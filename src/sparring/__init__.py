"""sparring: game-playing agents, trained by self-play at the speed of the hardware."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparring import errors as errors
    from sparring import games as games
    from sparring import pools as pools
    from sparring.errors import ConfigError as ConfigError
    from sparring.errors import IllegalActionError as IllegalActionError
    from sparring.errors import SparringError as SparringError
    from sparring.errors import StateError as StateError
    from sparring.games import Rules as Rules
    from sparring.games import State as State
    from sparring.games import game_names as game_names
    from sparring.games import load_state as load_state
    from sparring.games import new_state as new_state
    from sparring.games.recorded import Replay as Replay
    from sparring.league.arena import evaluate as evaluate
    from sparring.nets.policy import Policy as Policy
    from sparring.pools import LEARNER as LEARNER
    from sparring.pools import Batch as Batch
    from sparring.pools import Lineup as Lineup
    from sparring.pools import Pool as Pool
    from sparring.pools import Start as Start
    from sparring.proof.conformance import check as check
    from sparring.pygames import Game as Game
    from sparring.store.policies import load_policy as load
    from sparring.training.agent import Agent as Agent
    from sparring.training.several import Agents as Agents
    from sparring.training.train import resume as resume
    from sparring.training.train import train as train

__version__ = "0.1.0"

__all__ = [
    "LEARNER",
    "Agent",
    "Agents",
    "Batch",
    "ConfigError",
    "Game",
    "IllegalActionError",
    "Lineup",
    "Policy",
    "Pool",
    "Replay",
    "Rules",
    "SparringError",
    "Start",
    "State",
    "StateError",
    "check",
    "evaluate",
    "game_names",
    "load",
    "load_state",
    "new_state",
    "resume",
    "train",
]

PLACED_LEARNERS = {
    **dict.fromkeys(
        [f"{algo}@actors" for algo in ("ppo", "dqn", "qrdqn", "sac", "redq", "td3", "gumbel")],
        "sparring.cluster.learners:with_actors",
    ),
    "ppo@replicas": "sparring.cluster.learners:with_replicas",
}
"""Learners that run in several processes, by algorithm and place. They lie above planning, as each
process plans its own part of a run; `learn.algos.factory_at` loads one by its name."""

_MODULES = {
    "sparring.errors": ("ConfigError", "IllegalActionError", "SparringError", "StateError"),
    "sparring.games": ("Rules", "State", "game_names", "load_state", "new_state"),
    "sparring.games.recorded": ("Replay",),
    "sparring.league.arena": ("evaluate",),
    "sparring.nets.policy": ("Policy",),
    "sparring.pygames": ("Game",),
    "sparring.pools": ("LEARNER", "Batch", "Lineup", "Pool", "Start"),
    "sparring.proof.conformance": ("check",),
    "sparring.store.policies": ("load",),
    "sparring.training.agent": ("Agent",),
    "sparring.training.several": ("Agents",),
    "sparring.training.train": ("resume", "train"),
}
_RENAMED = {"load": "load_policy"}
_SUBMODULES = ("errors", "games", "pools")
"""Submodules that are available after `import sparring`."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: some of them import torch."""
    if name in _SUBMODULES:
        return import_module(f"sparring.{name}")
    for module, names in _MODULES.items():
        if name in names:
            value = getattr(_import(module, name), _RENAMED.get(name, name))
            globals()[name] = value
            return value
    raise AttributeError(f"module 'sparring' has no attribute {name!r}")


def _import(module: str, name: str) -> Any:
    """Import a module; raise with the extra to install if it needs torch, which is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        from sparring.extras import missing_package

        raise missing_package(missing, f"sparring.{name}") from None


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES, "__version__"})
