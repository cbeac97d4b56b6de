"""What suits a game and an algorithm better than the defaults of `sparring train`.

A game that has something to say has a `preset.py` in its folder:

    PRESET        what suits it, whatever learns; `ppo` and other tables of an algorithm count for
                  that one alone
    ALGOS         by algorithm, what else suits it
    HIERARCHY     what else suits it where every role has a network of its own; `roles` by role
    GPU_PRESET    what else is better with the network on a GPU
    GPU_ALGOS     the same by algorithm
    GPU_HIERARCHY the same where every role has a network of its own

The tables of the same names here are what suits any game. Of two that speak of a setting the later
goes first: the game's `PRESET`, then `ALGOS` of here and of the game, then `HIERARCHY`; on a GPU
then `GPU_PRESET`, `GPU_ALGOS` and `GPU_HIERARCHY` in the same way. A file and the command line go
before them all. An environment of somebody's own has `OWN_ALGOS` instead of all that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import ModuleType
from typing import Any

from sparring.config import QRDQNConfig, REDQConfig, TD3Config
from sparring.config.learning import NATURE_LEAST
from sparring.config.synonyms import LIKE
from sparring.errors import SparringError
from sparring.games.lookup import game_module
from sparring.games.rules import Rules
from sparring.league.custom_env import CUSTOM_ENV_GAMES
from sparring.pools.custom.cache import pixels_of
from sparring.pools.custom.make import DEFAULT_GAMES, EnvInfo, env_info
from sparring.pygames.registry import is_env
from sparring.training.planning.algorithms import OF_ALGORITHMS, ROLLOUTS, sections_of

PQN = "pqn"
"""What tables by algorithm call DQN's mode rollouts, which likes what PPO likes."""

ALGOS: dict[str, dict[str, Any]] = {
    # Few games and short rollouts: what was just learned plays soon.
    "dqn": {"collect": {"games": 16, "steps": 8}},
    "sac": {"collect": {"games": 16, "steps": 8}},
    "redq": {"replay": {"ratio": 160.0}},  # twenty times that of SAC
    # Many games make large batches of leaves; a decision costs much, so that updates come soon.
    "gumbel": {"collect": {"games": 512, "steps": 8}},
    # Without a target network, layer norm is what keeps values from running away.
    PQN: {"net": {"norm": True}},
}
"""What suits an algorithm."""
BOX_ALGOS: dict[str, dict[str, Any]] = {
    "sac": {"net": {"std": "predicted", "squash": True}},
    "td3": {"net": {"std": "shared", "squash": True}},
}
"""What else suits it where actions are continuous."""
GPU_PRESET: dict[str, Any] = {
    "net": {"hidden": (512, 512, 256)},
    "collect": {"games": 16384, "steps": 64},
    "ppo": {"minibatch": 32768, "lr": "0%:1e-3,100%:1e-4"},
}
"""What else is better with the network on a GPU, where large batches cost little."""
GPU_ALGOS: dict[str, dict[str, Any]] = {
    "dqn": {
        "net": {"hidden": (256, 256)},
        "collect": {"games": 4096, "steps": 8},
        "replay": {"batch": 32768, "warmup": 200_000},
    },
    "sac": {
        "net": {"hidden": (256, 256)},
        "collect": {"games": 4096, "steps": 8},
        "replay": {"batch": 32768, "warmup": 200_000},
    },
    "gumbel": {"collect": {"games": 8192, "steps": 16}, "gumbel": {"minibatch": 16384}},
    PQN: {"dqn": {"minibatch": 32768}},
}
"""The same by algorithm."""

OWN_ALGOS: dict[str, dict[str, Any]] = {
    # Such environments are slow: every sample is learned from more often, in smaller batches.
    "ppo": {"ppo": {"gamma": 0.99, "epochs": 4, "minibatch": 256}},
    "pqn": {"net": {"norm": True}},
    "dqn": {"collect": {"steps": 1}, "replay": {"warmup": 1000, "batch": 128, "ratio": 32.0}},
    "sac": {"collect": {"steps": 1}, "replay": {"warmup": 1000, "batch": 256, "ratio": 256.0}},
    "redq": {"replay": {"ratio": 5120.0}},
}
"""What suits environments of somebody else's better than the defaults, by algorithm."""

PIXEL_ALGOS = ("ppo", "dqn")
"""Algorithms that learn from pixels with convolutions."""
SETTINGS: dict[str, Any] = {"qrdqn": QRDQNConfig, "redq": REDQConfig, "td3": TD3Config}
"""Of algorithms that are like others: what suits those suits them too, unless tables say more."""
OWN_EVALUATION = 32
"""Episodes of an evaluation beside training: they may take seconds each."""

LEAGUES: dict[str, dict[str, Any]] = {
    "": {},
    "generations": {"opponents": ("past=1",), "league": {"sampling": "uniform"}},
}
"""Whole ways to play against one's past, by the names of league.preset."""


def presets_of(
    game: str,
    algo: str,
    mode: str = "",
    *,
    gpu: bool = False,
    hierarchy: bool = False,
    facts: EnvInfo | None = None,
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what presets say, each with where it stands; a later one goes before. mode: of DQN."""
    kind = kind_of(algo, mode)
    if facts or is_env(game):
        facts = facts or env_info(game)
        boxes = of_kind(BOX_ALGOS, kind) if facts.rules.box else []
        games: Mapping[str, Any] = {
            "collect": {"games": facts.games or DEFAULT_GAMES},
            "eval": {"games": OWN_EVALUATION, "final_games": CUSTOM_ENV_GAMES},
        }
        pixels = {"net": {"kind": pixel_kind(facts.rules)}} if kind in PIXEL_ALGOS else {}
        for table in (games, *of_kind(OWN_ALGOS, kind), *boxes, pixels):
            yield "your own environment", own_of(table, algo, mode)
        return
    own = game_module(game, "preset")
    tables = [
        (f"preset {game}", getattr(own, "PRESET", {})),
        *((f"preset of {kind}", table) for table in of_kind(ALGOS, kind)),
        *((f"preset of {kind}", x) for x in of_kind(BOX_ALGOS, kind) if is_continuous(game)),
        *by_algorithm(own, "ALGOS", game, kind),
    ]
    if hierarchy:
        tables += [(f"preset {game} by role", getattr(own, "HIERARCHY", {}))]
    if gpu:
        tables += [
            ("preset of GPUs", GPU_PRESET),
            (f"preset {game} on GPUs", getattr(own, "GPU_PRESET", {})),
            *((f"preset of {kind} on GPUs", table) for table in of_kind(GPU_ALGOS, kind)),
            *by_algorithm(own, "GPU_ALGOS", f"{game} on GPUs", kind),
        ]
    if gpu and hierarchy:
        tables += [(f"preset {game} by role on GPUs", getattr(own, "GPU_HIERARCHY", {}))]
    for where, table in tables:
        yield where, own_of(table, algo, mode)


def pixel_kind(rules: Rules) -> str:
    """Return the kind of network that suits an environment's observations."""
    if (pixels := pixels_of(rules)) is None:
        return "mlp"
    return "nature" if min(pixels.size) >= NATURE_LEAST else "impala"


def kind_of(algo: str, mode: str) -> str:
    return PQN if algo == "dqn" and mode == ROLLOUTS else algo


def own_of(table: Mapping[str, Any], algo: str, mode: str) -> dict[str, Any]:
    others = set(OF_ALGORITHMS) - set(sections_of(algo, mode))
    return {key: value for key, value in table.items() if key not in others}


def of_kind(tables: Mapping[str, Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """Return what tables by algorithm say about one, after what they say about one alike."""
    mine = tables.get(kind, {})
    if kind not in LIKE:
        return [mine]
    alike = dict(tables.get(LIKE[kind], {}))
    theirs, known = alike.pop(LIKE[kind], {}), {field.name for field in fields(SETTINGS[kind])}
    return [alike | {kind: {key: x for key, x in theirs.items() if key in known}}, mine]


def by_algorithm(
    preset: ModuleType | None, name: str, what: str, kind: str
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return what a game says about an algorithm; of PQN also what it says about DQN's settings."""
    tables: Mapping[str, Mapping[str, Any]] = getattr(preset, name, {})
    found = [(f"preset {what} of {kind}", table) for table in of_kind(tables, kind)]
    if kind == PQN and "dqn" in tables.get("dqn", {}):
        return [(f"preset {what} of dqn", {"dqn": tables["dqn"]["dqn"]}), *found]
    return found


def is_continuous(game: str) -> bool:
    """Whether a game's actions are numbers; one that does not exist is refused elsewhere."""
    try:
        return bool(Rules(game).box)
    except SparringError:
        return False
