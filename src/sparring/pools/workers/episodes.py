"""Single episodes in custom environments, each with its own seed.

They are played in a worker process: a step that hangs, exits or crashes costs a measurement and
nothing else. `LocalEpisodes` plays in this process.
"""

from __future__ import annotations

import atexit
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy.typing as npt

from sparring.errors import SparringError, VectorError
from sparring.factories import is_local_factory
from sparring.pools.custom.buffers import SharedBuffers
from sparring.pools.custom.faults import env_errors
from sparring.pools.custom.make import make_pool
from sparring.pools.custom.rules import CustomRules
from sparring.pools.custom.seats import TablePool
from sparring.pools.workers.parts import parts_of, shared_shapes
from sparring.pools.workers.supervisor import Limits, WorkerSupervisor
from sparring.processes import SharedArrays


class EnvEpisodes(ABC):
    """Some games of a factory. A game that has ended stops until it is started again."""

    rules: CustomRules
    game_buffers: list[SharedBuffers]
    """Buffers of every game, valid after `wait`."""
    pool: TablePool | None = None
    """The environments, if they are in this process."""

    @abstractmethod
    def start(self, game: int, seed: int) -> None:
        """Start an episode."""

    @abstractmethod
    def step(self, game: int, action: npt.NDArray[Any]) -> None:
        """Step a running game."""

    @abstractmethod
    def wait(self) -> None:
        """Wait for all starts and steps. Raises `EnvError` if an environment fails."""

    @abstractmethod
    def close(self) -> None:
        """Close the environments."""


class WorkerEpisodes(EnvEpisodes):
    """Games in a worker process."""

    def __init__(self, word: str, games: int, limits: Limits) -> None:
        job = {"word": word, "seed": 0, "first_game": 0, "all_games": games, "memory": 0}
        self._parts = parts_of(games, 1, games)
        self._supervisor = WorkerSupervisor({**job, "again": False}, self._parts, limits)
        self._end: Callable[[], Any] = weakref.finalize(self, self._supervisor.end)
        self.rules = CustomRules(**self._supervisor.description["rules"])
        shared = SharedArrays(shared_shapes(self.rules, games, 1, 0))
        self._action, whole = shared["action"], SharedBuffers.of(shared.items())
        self._supervisor.share(shared)
        self.game_buffers = [whole.part(self.rules.rows, game, 1) for game in range(games)]

    @property
    def ended(self) -> bool:
        return self._supervisor.ended

    def start(self, game: int, seed: int) -> None:
        self._supervisor.begin(self._parts[game], [seed])

    def step(self, game: int, action: npt.NDArray[Any]) -> None:
        first = game * self.rules.rows
        self._action[first : first + self.rules.rows] = action
        self._supervisor.step(self._parts[game])

    def wait(self) -> None:
        self._supervisor.wait(self._parts)

    def close(self) -> None:
        self._end()


class LocalEpisodes(EnvEpisodes):
    """Games in this process."""

    ended = False

    def __init__(self, pool: TablePool) -> None:
        self.pool: TablePool = pool
        self.rules = pool.rules
        whole, games = SharedBuffers.make(pool.rules, pool.num_games), range(pool.num_games)
        self.game_buffers = [whole.part(self.rules.rows, game, 1) for game in games]
        self._stepper = [
            pool.stepper(game, 1, self.game_buffers[game], again=False) for game in games
        ]

    def start(self, game: int, seed: int) -> None:
        with env_errors(f"{self.rules.name} failed in its reset"):
            self._stepper[game].start([seed])

    def step(self, game: int, action: npt.NDArray[Any]) -> None:
        with env_errors(f"{self.rules.name} failed in a step"):
            self._stepper[game].step(action)

    def wait(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        self.pool.close()


MAX_CACHED = 2
"""Factories whose environments stay open, as some take long to start."""
_cached: dict[tuple[str, int, Limits, bool], WorkerEpisodes | LocalEpisodes] = {}


def open_episodes(word: str, games: int, limits: Limits, *, local: bool = False) -> EnvEpisodes:
    """Make games by their factory's name, or return cached ones.

    local: in this process, as are those of a factory that other processes cannot import.
    """
    local = local or is_local_factory(word)
    key = word, games, limits, local
    found = _cached.pop(key, None)
    if found is None or found.ended:
        found = open_local(word, games) if local else WorkerEpisodes(word, games, limits)
    _cached[key] = found  # the most recently used is the last
    while len(_cached) > MAX_CACHED:
        close(_cached.pop(next(iter(_cached))))
    return found


def open_local(word: str, games: int) -> LocalEpisodes:
    pool = make_pool(word, copies=games)
    if not isinstance(pool, TablePool):
        pool.close()
        raise VectorError(f"{word} makes a vector of envs, which steps them itself")
    return LocalEpisodes(pool)


@atexit.register
def close_cached() -> None:
    while _cached:
        close(_cached.popitem()[1])


def close(episodes: EnvEpisodes) -> None:
    """Let go of what environments hold, such as windows or simulators."""
    with suppress(SparringError):  # nobody needs them any more
        episodes.close()
