"""Environments that a run finds by name: in this process, or in worker processes."""

from __future__ import annotations

from sparring.config import TrainConfig
from sparring.factories import is_factory
from sparring.pools.foreign.base import ForeignPool
from sparring.pools.foreign.make import make_pool


def is_own(config: TrainConfig) -> bool:
    """Whether a run's game is an environment of somebody's own, by its factory's name."""
    return is_factory(config.game)


def own_pool(config: TrainConfig, first_game: int = 0) -> ForeignPool:
    """Make the games of a run, as many as collect.games says.

    first_game: how many games of the same run are played by others before these.
    """
    # Worker processes are asked for here: config.workers, config.env.
    return make_pool(config.game, config.collect.games, seed=config.seed, first_game=first_game)
