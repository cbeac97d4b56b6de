"""Pools of the environments that a factory makes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sparring.errors import USER_CODE_ERRORS, ConfigError, EnvError, SparringError
from sparring.factories import describe_error, factory_name, load_factory
from sparring.ids import display_name
from sparring.pools.custom.base import CustomPool
from sparring.pools.custom.encoding import library
from sparring.pools.custom.faults import first_line, restored_folder
from sparring.pools.custom.rules import CustomRules
from sparring.pools.custom.seats import AECPool, ParallelPool
from sparring.pools.custom.solo import SoloPool, check_env
from sparring.pools.custom.vector import VectorEnvPool

Factory = Callable[[], Any]

DEFAULT_GAMES = 16
"""Number of games if none is given."""
ACCEPTED = "a gymnasium.Env, a gymnasium VectorEnv, a PettingZoo AECEnv or a PettingZoo ParallelEnv"
SINGLE, VECTOR, AEC, PARALLEL = "env", "vector", "aec", "parallel"
"""Kinds of environments."""
POOLS = {SINGLE: SoloPool, AEC: AECPool, PARALLEL: ParallelPool}


@dataclass(frozen=True)
class EnvInfo:
    """Properties of a factory's environments."""

    rules: CustomRules
    games: int
    """Number of sub-envs of a vector; 0 for single environments."""


def env_info(factory: str | Factory) -> EnvInfo:
    """Make an environment to read its properties; cached by factory name."""
    if isinstance(factory, str) and factory in _known:
        return _known[factory]
    make = load_factory(factory, "game") if isinstance(factory, str) else factory
    with restored_folder():
        info = probe(make, label_of(factory))
    if isinstance(factory, str):
        _known[factory] = info
    return info


def probe(factory: Factory, what: str) -> EnvInfo:
    """Make one environment, reset it and close it."""
    pool = make_pool(factory, 0, copies=1, what=what)
    begin(pool, what)
    info = EnvInfo(pool.rules, pool.num_games if isinstance(pool, VectorEnvPool) else 0)
    try:
        pool.close()
    except EnvError as wrong:
        raise ConfigError(f"{what} cannot be closed: {first_line(wrong)}") from wrong
    return info


_known: dict[str, EnvInfo] = {}


def make_pool(
    factory: str | Factory,
    games: int = 0,
    *,
    seed: int = 0,
    first_game: int = 0,
    memory: int = 0,
    copies: int = DEFAULT_GAMES,
    what: str = "",
) -> CustomPool:
    """Return a pool of a factory's environments, all in this process.

    factory: a function without arguments that returns an environment, or its name, such as
        my_game:make_env. A vector is made once: its sub-envs are the games.
    games: 0 for all sub-envs of a vector, or `copies` single environments.
    first_game: games of the same run that other pools play before these; game i is first reset
        with seed + first_game + i.
    memory: bytes per (game, seat), appended to the observation.
    what: label of the factory in errors, by default its name.
    """
    what = what or label_of(factory)
    make = load_factory(factory, "game") if isinstance(factory, str) else factory
    first = make_env(make, what)
    kind = kind_of(first, what)
    if kind == VECTOR:
        pool: CustomPool = VectorEnvPool(first, seed=seed, memory=memory)
        if games not in (0, pool.num_games):
            raise ConfigError(
                f"collect.games {games}: {what} makes a vector of {pool.num_games} envs, and they "
                "are the games; leave it out"
            )
    else:
        envs = [first, *(make_env(make, what) for _ in range((games or copies) - 1))]
        for env in envs:
            if kind_of(env, what) != kind:
                raise ConfigError(f"{what} makes environments of different kinds")
        pool = POOLS[kind](envs, seed=seed, memory=memory)
    pool.first_game = first_game
    return pool


def label_of(factory: str | Factory) -> str:
    """Label of a factory in errors."""
    word = factory if isinstance(factory, str) else factory_name(factory)
    return f"game {display_name(word) or getattr(factory, '__name__', type(factory).__name__)!r}"


def make_env(factory: Factory, what: str) -> Any:
    """Call a factory; an error becomes one line with its location."""
    try:
        return factory()
    except SparringError:
        raise
    except USER_CODE_ERRORS as wrong:
        raise ConfigError(f"{what} cannot be made: {describe_error(wrong)}") from wrong


def begin(pool: CustomPool, what: str) -> None:
    """Reset a pool; an error becomes one line, before a run starts."""
    try:
        pool.reset()
    except SparringError as wrong:
        with suppress(SparringError):  # an environment that was never reset may fail to close
            pool.close()
        raise ConfigError(f"{what} cannot be reset: {first_line(wrong)}") from wrong


def kind_of(env: Any, what: str) -> str:
    """Kind of an environment; other objects are refused."""
    kind = known_kind(env)
    if not kind:
        raise ConfigError(f"{what} returns {type(env).__name__}; it has to return {ACCEPTED}")
    return kind


def known_kind(env: Any) -> str:
    """Kind of an environment; "" if it is none."""
    gymnasium, pettingzoo = library("gymnasium"), library("pettingzoo")
    if gymnasium:
        importlib.import_module("gymnasium.vector")
        if isinstance(env, gymnasium.vector.VectorEnv):
            return VECTOR
        if isinstance(env, gymnasium.Env):
            check_env(env)
            return SINGLE
    if pettingzoo and isinstance(env, pettingzoo.AECEnv):
        return AEC
    if pettingzoo and isinstance(env, pettingzoo.ParallelEnv):
        return PARALLEL
    return ""
