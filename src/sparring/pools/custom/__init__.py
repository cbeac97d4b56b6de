"""Pools of custom environments: Gymnasium envs and vectors, PettingZoo envs."""

from __future__ import annotations

from typing import Any

from sparring import ids, trusted
from sparring.errors import ConfigError
from sparring.pools.custom import make
from sparring.pools.custom.base import CustomBatch, CustomPool
from sparring.pools.custom.make import POOLS, VECTOR, known_kind
from sparring.pools.custom.rules import CustomRules
from sparring.pools.custom.seats import AECPool, ParallelPool
from sparring.pools.custom.solo import SoloPool
from sparring.pools.custom.vector import VectorEnvPool

__all__ = [
    "AECPool",
    "CustomBatch",
    "CustomPool",
    "CustomRules",
    "ParallelPool",
    "SoloPool",
    "VectorEnvPool",
    "make_pool",
    "pool_of",
]

ACCEPTED = (
    "a gymnasium.vector.VectorEnv, a pettingzoo AECEnv, a pettingzoo ParallelEnv, a gymnasium.Env, "
    "or a list of envs of one kind"
)


def make_pool(factory: Any, games: int = 0, **options: Any) -> CustomPool:
    """Return a pool of games that a factory makes, see `make.make_pool`.

    factory: a function or class, or its name, which thereby may run.
    """
    if isinstance(factory, str):
        factory = ids.trust_typed(factory)
        trusted.allow(factory)
    return make.make_pool(factory, games, **options)


def pool_of(env: Any, *, seed: int = 0, memory: int = 0) -> CustomPool:
    """Return a pool over an environment object, or over a list of envs, each a game.

    memory: bytes per (game, seat) that are shown behind the observation.
    """
    if known_kind(env) == VECTOR:
        return VectorEnvPool(env, seed=seed, memory=memory)
    tables = list(env) if isinstance(env, list | tuple) else [env]
    kinds = {known_kind(table) for table in tables}
    if len(kinds) == 1 and kinds <= POOLS.keys():
        return POOLS[kinds.pop()](tables, seed=seed, memory=memory)
    raise ConfigError(f"{type(env).__name__} cannot be trained on; give {ACCEPTED}")
