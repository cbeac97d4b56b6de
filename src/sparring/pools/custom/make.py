"""As many environments as there are to be games, by the function that makes one."""

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
from sparring.pools.custom.faults import first_line, same_folder
from sparring.pools.custom.rules import CustomRules
from sparring.pools.custom.seats import AECPool, ParallelPool
from sparring.pools.custom.solo import SoloPool, check_env
from sparring.pools.custom.vector import VectorEnvPool

Factory = Callable[[], Any]

DEFAULT_GAMES = 16
"""Games of a factory's, where nobody says how many."""
MADE = "a gymnasium.Env, a gymnasium VectorEnv, a PettingZoo AECEnv or a PettingZoo ParallelEnv"
SOLO, VECTOR, TURNS, TOGETHER = "env", "vector", "aec", "parallel"
"""Kinds of environments."""
POOLS = {SOLO: SoloPool, TURNS: AECPool, TOGETHER: ParallelPool}


@dataclass(frozen=True)
class EnvInfo:
    """What is known of a factory's environments before any is played."""

    rules: CustomRules
    games: int
    """Those of a vector, whose sub-envs they are; 0: as many as one likes."""


def env_info(factory: str | Factory) -> EnvInfo:
    """What is known of a factory's environments; of a name it is found out once."""
    if isinstance(factory, str) and factory in _facts:
        return _facts[factory]
    make = load_factory(factory, "game") if isinstance(factory, str) else factory
    with same_folder():
        facts = look_at(make, named(factory))
    if isinstance(factory, str):
        _facts[factory] = facts
    return facts


def look_at(factory: Factory, what: str) -> EnvInfo:
    """Make one environment, begin an episode in it and close it."""
    pool = make_pool(factory, 0, copies=1, what=what)
    begin(pool, what)
    facts = EnvInfo(pool.rules, pool.num_games if isinstance(pool, VectorEnvPool) else 0)
    try:
        pool.close()
    except EnvError as wrong:
        raise ConfigError(f"{what} cannot be closed: {first_line(wrong)}") from wrong
    return facts


_facts: dict[str, EnvInfo] = {}


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
    """Return a pool of environments that a factory makes, all in this process.

    factory: a function without arguments that returns an environment, or its name, as in
        my_game:make_env. A vector is made once: its sub-envs are the games.
    games: 0 for as many as a vector has, or `copies` of anything else.
    first_game: how many games of the same run are played elsewhere before these; game i is seeded
        with seed + first_game + i when it first begins.
    memory: bytes per (game, seat) that are shown behind the observation.
    what: how errors call the factory, if not by its own name.
    """
    what = what or named(factory)
    make = load_factory(factory, "game") if isinstance(factory, str) else factory
    first = made(make, what)
    kind = kind_of(first, what)
    if kind == VECTOR:
        pool: CustomPool = VectorEnvPool(first, seed=seed, memory=memory)
        if games not in (0, pool.num_games):
            raise ConfigError(
                f"collect.games {games}: {what} makes a vector of {pool.num_games} envs, and they "
                "are the games; leave it out"
            )
    else:
        envs = [first, *(made(make, what) for _ in range((games or copies) - 1))]
        for env in envs:
            if kind_of(env, what) != kind:
                raise ConfigError(f"{what} makes another kind of environment every time")
        pool = POOLS[kind](envs, seed=seed, memory=memory)
    pool.first_game = first_game
    return pool


def named(factory: str | Factory) -> str:
    """What errors call a factory."""
    word = factory if isinstance(factory, str) else factory_name(factory)
    return f"game {display_name(word) or getattr(factory, '__name__', type(factory).__name__)!r}"


def made(factory: Factory, what: str) -> Any:
    """Call a factory; what it raises is told in one line, with the place."""
    try:
        return factory()
    except SparringError:
        raise
    except USER_CODE_ERRORS as wrong:
        raise ConfigError(f"{what} cannot be made: {describe_error(wrong)}") from wrong


def begin(pool: CustomPool, what: str) -> None:
    """Reset a pool; what is wrong then is told in one line, before a run has begun."""
    try:
        pool.reset()
    except SparringError as wrong:
        with suppress(SparringError):  # an environment that never began may not be closed either
            pool.close()
        raise ConfigError(f"{what} cannot be reset: {first_line(wrong)}") from wrong


def kind_of(env: Any, what: str) -> str:
    """What kind of environment a factory made; anything else is refused."""
    kind = known_kind(env)
    if not kind:
        raise ConfigError(f"{what} returns {type(env).__name__}; it has to return {MADE}")
    return kind


def known_kind(env: Any) -> str:
    """What kind of environment something is; "" if it is none."""
    gymnasium, pettingzoo = library("gymnasium"), library("pettingzoo")
    if gymnasium:
        importlib.import_module("gymnasium.vector")
        if isinstance(env, gymnasium.vector.VectorEnv):
            return VECTOR
        if isinstance(env, gymnasium.Env):
            check_env(env)
            return SOLO
    if pettingzoo and isinstance(env, pettingzoo.AECEnv):
        return TURNS
    if pettingzoo and isinstance(env, pettingzoo.ParallelEnv):
        return TOGETHER
    return ""
