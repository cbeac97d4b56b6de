"""Flags, line-ups and reward weights of somebody else's environments while they run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from pools.foreign_envs import Countdown, Fading, MatchingPennies
from sparring.errors import ConfigError
from sparring.pools import LEARNER, Lineup, Mix
from sparring.pools.custom import pool_of


class Told(Countdown):
    """A game that is told its limit, and follows when it begins."""

    def __init__(self) -> None:
        super().__init__()
        self.next_limit = self.limit

    def set_config(self, *, limit: int) -> None:
        if limit < 1:
            raise ValueError("limit is below 1")
        self.next_limit = limit

    def reset(self, **options: Any) -> Any:
        self.limit = self.next_limit
        return super().reset(**options)


class Asked(Countdown):
    """A game whose attribute is read when it begins."""

    wanted = 4

    def reset(self, **options: Any) -> Any:
        self.limit = self.wanted
        return super().reset(**options)


def lengths(pool: Any, steps: int) -> list[int]:
    """Decisions of the games that end when nobody ends them."""
    found: list[int] = []
    for _ in range(steps):
        batch = pool.step(np.zeros(pool.num_games, np.int64))
        found += [int(length) for length in batch.final_length]
    return found


@pytest.mark.parametrize("vector", [SyncVectorEnv, AsyncVectorEnv])
@pytest.mark.parametrize(("game", "flag"), [(Told, "limit"), (Asked, "wanted")])
def test_games_follow_when_they_begin(vector: Any, game: Any, flag: str) -> None:
    env = vector([game] * 2)
    try:
        pool = pool_of(env)
        pool.reset()
        pool.step(np.zeros(2, np.int64))
        pool.set_config(**{flag: 2})
        assert lengths(pool, 10) == [4, 4, 2, 2, 2, 2]
    finally:
        env.close()


def test_what_an_env_refuses_is_refused() -> None:
    pool = pool_of(SyncVectorEnv([Told] * 2))
    with pytest.raises(ConfigError, match=r"refuses the flags .*limit is below 1"):
        pool.set_config(limit=0)
    with pytest.raises(ConfigError, match=r"give the env a method set_config"):
        pool_of(SyncVectorEnv([Countdown] * 2)).set_config(speed=1)


def test_tables_take_flags_and_keep_their_mixes() -> None:
    tables = [Fading(limit=9) for _ in range(2)]
    pool = pool_of(tables)
    pool.set_config(limit=2)
    assert [table.limit for table in tables] == [2, 2]
    with pytest.raises(ConfigError, match="no flags speed"):
        pool.set_config(speed=1)
    pool = pool_of([MatchingPennies() for _ in range(4)])
    pool.set_lineups([Lineup((LEARNER, LEARNER))], mixes=("past",))
    pool.set_mixes({"past": {1: 1.0}})
    assert pool.policies == {LEARNER}
    pool.set_lineups([Lineup((LEARNER, Mix("past")))], pool.mixes)
    assert pool.policies == {LEARNER, 1}
    pool.reset()
    assert pool.seated(2).tolist() == [4, 4]
