"""Environments that people bring along, as pools: Gymnasium vectors and PettingZoo tables."""

from __future__ import annotations

from typing import Any

from sparring.errors import ConfigError
from sparring.pools.foreign.base import ForeignBatch, ForeignPool
from sparring.pools.foreign.encoding import library
from sparring.pools.foreign.rules import ForeignRules
from sparring.pools.foreign.seats import AECPool, ParallelPool
from sparring.pools.foreign.vector import VectorEnvPool

__all__ = [
    "AECPool",
    "ForeignBatch",
    "ForeignPool",
    "ForeignRules",
    "ParallelPool",
    "VectorEnvPool",
    "pool_of",
]

ACCEPTED = (
    "a gymnasium.vector.VectorEnv, a pettingzoo AECEnv, a pettingzoo ParallelEnv, or a list of "
    "PettingZoo envs of one kind"
)


def pool_of(env: Any, *, seed: int = 0, memory: int = 0) -> ForeignPool:
    """Return a pool over an environment object, or over a list of PettingZoo envs.

    memory: bytes per (game, seat) that are shown behind the observation.
    """
    gymnasium, pettingzoo = library("gymnasium"), library("pettingzoo")
    if gymnasium and isinstance(env, gymnasium.vector.VectorEnv):
        return VectorEnvPool(env, seed=seed, memory=memory)
    tables = list(env) if isinstance(env, list | tuple) else [env]
    if pettingzoo and tables:
        if all(isinstance(table, pettingzoo.AECEnv) for table in tables):
            return AECPool(tables, seed=seed, memory=memory)
        if all(isinstance(table, pettingzoo.ParallelEnv) for table in tables):
            return ParallelPool(tables, seed=seed, memory=memory)
    hint = ""
    if gymnasium and any(isinstance(table, gymnasium.Env) for table in tables):
        hint = (
            "; a single gymnasium.Env needs company: gymnasium.make_vec(id, num_envs=16) or "
            "gymnasium.vector.SyncVectorEnv([make_env] * 16)"
        )
    raise ConfigError(f"{type(env).__name__} cannot be trained on; give {ACCEPTED}{hint}")
