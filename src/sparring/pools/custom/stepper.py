"""Stepping of some tables, in this process or in a worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import SparringError
from sparring.phases import phase
from sparring.pools.custom.buffers import (
    GAME_RUNNING,
    GAME_TERMINATED,
    GAME_TRUNCATED,
    SharedBuffers,
)
from sparring.pools.custom.rules import CustomRules
from sparring.pools.custom.tables import EnvTable

SHARED = ("numbers", "mask", "reward", "inside", "truncated")
"""Attributes of tables that are views into arrays of all tables."""


class TableStepper:
    """Steps tables one by one and writes the results into buffers.

    Observations, masks and rewards of all tables lie in common arrays and are checked at once: at
    50 microseconds a step, the work per environment counts.
    """

    def __init__(
        self,
        tables: Sequence[EnvTable],
        rules: CustomRules,
        buffers: SharedBuffers,
        beat: Callable[[], None] | None = None,
        *,
        again: bool = True,
    ) -> None:
        """Step these tables.

        beat: called after every step and reset of one of them.
        again: reset a game at once when it ends; otherwise it stops until `start`.
        """
        self.tables, self.rules, self.buffers, self.beat = tuple(tables), rules, buffers, beat
        self._again = again
        for name in SHARED:
            whole = np.stack([getattr(table, name) for table in tables])
            setattr(self, name, whole)
            for game, table in enumerate(tables):
                setattr(table, name, whole[game])
        self._score = np.zeros((len(tables), rules.seats))
        self._length = np.zeros(len(tables), np.int32)
        self.ended = 0
        """Episodes that have ended."""
        self._game = np.repeat(np.arange(len(tables)), rules.rows)
        """Game of every row."""

    numbers: npt.NDArray[Any]
    mask: npt.NDArray[np.uint8]
    reward: npt.NDArray[np.float64]
    inside: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]

    @phase("reset")
    def start(self, seeds: Sequence[int | None]) -> None:
        """Start an episode at every table; without a seed the env continues its random numbers."""
        buffers = self.buffers
        for array in (self.reward, buffers.reward, self._score, self._length):
            array.fill(0)
        buffers.end.fill(GAME_RUNNING)
        for table, seed in zip(self.tables, seeds, strict=True):
            table.steps = 0
            self._start(table, seed)
        self._check()
        self._fill_rows()

    @phase("stepping")
    def step(self, action: npt.NDArray[Any]) -> None:
        """Step all tables. Actions of rows without a seat are ignored."""
        rows, buffers = self.rules.rows, self.buffers
        env_action = self.rules.env_actions(action)
        self._length += (buffers.seat >= 0).reshape(-1, rows).sum(axis=1, dtype=np.int32)
        self.reward.fill(0)
        for game, table in enumerate(self.tables):
            table.play(env_action[game * rows : (game + 1) * rows])
            if self.beat:
                self.beat()
        self._check()
        buffers.end.fill(GAME_RUNNING)
        buffers.reward[:] = self.reward
        self._score += self.reward
        over = np.flatnonzero(~self.inside.any(axis=1))
        if len(over):
            self._end(over)
            self._check()
        self._fill_rows()

    @phase("reset")
    def _end(self, games: npt.NDArray[np.intp]) -> None:
        """Store the results of episodes that have ended, and start the next ones."""
        buffers, truncated = self.buffers, self.truncated[games]
        self.ended += len(games)
        buffers.end[games] = np.where(truncated.any(axis=1), GAME_TRUNCATED, GAME_TERMINATED)
        last = np.zeros((len(games), *buffers.last_obs.shape[1:]), np.uint8)
        self.rules.layout.write(last, self.numbers[games])
        buffers.last_obs[games] = last
        buffers.last_mask[games] = self.mask[games] * truncated[:, :, None]
        buffers.last_over[games] = ~truncated
        buffers.last_score[games] = self._score[games]
        buffers.last_length[games] = self._length[games]
        self._score[games], self._length[games] = 0, 0
        for game in games if self._again else ():
            self._start(self.tables[game], None)

    def _start(self, table: EnvTable, seed: int | None) -> None:
        table.start(seed)
        if table.over:
            raise SparringError(f"{table.where}: there are no agents after a reset")
        if self.beat:
            self.beat()

    def _check(self) -> None:
        """Refuse observations and rewards that are not finite."""
        numbers = self.numbers if self.numbers.dtype.kind == "f" else self.reward
        if np.isfinite(numbers).all() and np.isfinite(self.reward).all():
            return
        fine = np.isfinite(self.numbers).all(axis=2) & np.isfinite(self.reward)
        for game in np.flatnonzero(~fine.all(axis=1))[:1]:
            self.tables[game].check()

    def _fill_rows(self) -> None:
        buffers = self.buffers
        buffers.seat[:] = [seat for table in self.tables for seat in table.deciding()]
        seat = np.maximum(buffers.seat, 0)  # rows without a seat show the first one's
        self.rules.layout.write(buffers.obs, self.numbers[self._game, seat])
        np.multiply(self.mask[self._game, seat], (buffers.seat >= 0)[:, None], out=buffers.mask)
