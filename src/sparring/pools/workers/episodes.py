"""Single episodes in environments of somebody's own, each begun with a seed of its own.

They are played in a process that can be ended: a step that hangs, exits or crashes there costs a
measurement and nothing else. `Here` is the same in this process.
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
from sparring.pools.custom.faults import told
from sparring.pools.custom.make import make_pool
from sparring.pools.custom.rules import CustomRules
from sparring.pools.custom.seats import TablePool
from sparring.pools.workers.parts import parts_of, shared_shapes
from sparring.pools.workers.supervisor import Crew, Limits
from sparring.processes import SharedArrays


class Episodes(ABC):
    """Some games of a factory's. One that has ended rests until it is started again."""

    rules: CustomRules
    game_buffers: list[SharedBuffers]
    """What every game shows, once it was waited for."""

    @abstractmethod
    def start(self, game: int, seed: int) -> None:
        """Begin an episode."""

    @abstractmethod
    def step(self, game: int, action: npt.NDArray[Any]) -> None:
        """Answer the rows of a game that is running."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until all that was asked for is done. `EnvError` says what went wrong."""

    @abstractmethod
    def close(self) -> None:
        """Close the environments."""


class Away(Episodes):
    """Games in a worker process."""

    def __init__(self, word: str, games: int, limits: Limits) -> None:
        job = {"word": word, "seed": 0, "first_game": 0, "all_games": games, "memory": 0}
        self._parts = parts_of(games, 1, games)
        self._crew = Crew({**job, "again": False}, self._parts, limits)
        self._end: Callable[[], Any] = weakref.finalize(self, self._crew.end)
        self.rules = CustomRules(**self._crew.hello["hello"])
        shared = SharedArrays(shared_shapes(self.rules, games, 1, 0))
        self._action, whole = shared["action"], SharedBuffers.of(shared.items())
        self._crew.share(shared)
        self.game_buffers = [whole.part(self.rules.rows, game, 1) for game in range(games)]

    @property
    def ended(self) -> bool:
        return self._crew.ended

    def start(self, game: int, seed: int) -> None:
        self._crew.begin(self._parts[game], [seed])

    def step(self, game: int, action: npt.NDArray[Any]) -> None:
        first = game * self.rules.rows
        self._action[first : first + self.rules.rows] = action
        self._crew.step(self._parts[game])

    def wait(self) -> None:
        self._crew.wait(self._parts)

    def close(self) -> None:
        self._end()


class Here(Episodes):
    """Games in this process."""

    ended = False

    def __init__(self, pool: TablePool) -> None:
        self._pool, self.rules = pool, pool.rules
        whole, games = SharedBuffers.make(pool.rules, pool.num_games), range(pool.num_games)
        self.game_buffers = [whole.part(self.rules.rows, game, 1) for game in games]
        self._playing = [
            pool.playing(game, 1, self.game_buffers[game], again=False) for game in games
        ]

    def start(self, game: int, seed: int) -> None:
        with told(f"{self.rules.name} failed in its reset"):
            self._playing[game].start([seed])

    def step(self, game: int, action: npt.NDArray[Any]) -> None:
        with told(f"{self.rules.name} failed in a step"):
            self._playing[game].step(action)

    def wait(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        self._pool.close()


KEPT = 2
"""Environments of so many factories are kept, as some take long to start."""
_kept: dict[tuple[str, int, Limits], Away | Here] = {}


def open_episodes(word: str, games: int, limits: Limits) -> Episodes:
    """Make games by their factory's name, or take those that are kept.

    What only this program has, or would begin anew elsewhere, is played in this process.
    """
    key = word, games, limits
    found = _kept.pop(key, None)
    if found is None or found.ended:
        found = here(word, games) if is_local_factory(word) else Away(word, games, limits)
    _kept[key] = found  # the newest is the last
    while len(_kept) > KEPT:
        close(_kept.pop(next(iter(_kept))))
    return found


def here(word: str, games: int) -> Here:
    pool = make_pool(word, copies=games)
    if not isinstance(pool, TablePool):
        pool.close()
        raise VectorError(f"{word} makes a vector of envs, which steps them itself")
    return Here(pool)


@atexit.register
def close_kept() -> None:
    while _kept:
        close(_kept.popitem()[1])


def close(episodes: Episodes) -> None:
    """Let go of what environments hold, such as windows or simulators."""
    with suppress(SparringError):  # nobody needs them any more
        episodes.close()
