"""Playing the games of some tables, in whatever process they are."""

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
from sparring.pools.custom.tables import Table

TOGETHER = ("numbers", "mask", "reward", "inside", "truncated")
"""What tables keep in arrays that they have in common here."""


class Playing:
    """Steps tables one after the other and writes what comes of it onto their buffers.

    What the tables see lies in arrays of all of them, so that it is looked at once for all: at 50
    microseconds a step, what is done for every single env counts.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        rules: CustomRules,
        buffers: SharedBuffers,
        beat: Callable[[], None] | None = None,
        *,
        again: bool = True,
    ) -> None:
        """Take over tables.

        beat: called whenever one of them has answered.
        again: whether what ends begins anew at once; otherwise it rests until it is started.
        """
        self.tables, self.rules, self.buffers, self.beat = tuple(tables), rules, buffers, beat
        self._again = again
        for name in TOGETHER:
            whole = np.stack([getattr(table, name) for table in tables])
            setattr(self, name, whole)
            for game, table in enumerate(tables):
                setattr(table, name, whole[game])
        self._score = np.zeros((len(tables), rules.seats))
        self._length = np.zeros(len(tables), np.int32)
        self.ended = 0
        """Episodes that have come to their end."""
        self._game = np.repeat(np.arange(len(tables)), rules.rows)
        """Of every row."""

    numbers: npt.NDArray[np.float32]
    mask: npt.NDArray[np.uint8]
    reward: npt.NDArray[np.float64]
    inside: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]

    @phase("reset")
    def start(self, seeds: Sequence[int | None]) -> None:
        """Start an episode at every table; without a seed the env goes on with its own numbers."""
        buffers = self.buffers
        for array in (self.reward, buffers.reward, self._score, self._length):
            array.fill(0)
        buffers.end.fill(GAME_RUNNING)
        for table, seed in zip(self.tables, seeds, strict=True):
            table.steps = 0
            self._start(table, seed)
        self._check()
        self._show()

    @phase("stepping")
    def step(self, action: npt.NDArray[Any]) -> None:
        """Answer all rows; what ends begins anew or rests. Actions for nobody are ignored."""
        rows, buffers = self.rules.rows, self.buffers
        own = self.rules.env_actions(action)
        self._length += (buffers.seat >= 0).reshape(-1, rows).sum(axis=1, dtype=np.int32)
        self.reward.fill(0)
        for game, table in enumerate(self.tables):
            table.play(own[game * rows : (game + 1) * rows])
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
        self._show()

    @phase("reset")
    def _end(self, games: npt.NDArray[np.intp]) -> None:
        """Write down episodes that are over, and begin the next ones."""
        buffers, cut = self.buffers, self.truncated[games]
        self.ended += len(games)
        buffers.end[games] = np.where(cut.any(axis=1), GAME_TRUNCATED, GAME_TERMINATED)
        last = np.zeros((len(games), *buffers.last_obs.shape[1:]), np.uint8)
        self.rules.layout.write(last, self.numbers[games])
        buffers.last_obs[games] = last
        buffers.last_mask[games] = self.mask[games] * cut[:, :, None]
        buffers.last_over[games] = ~cut
        buffers.last_score[games], buffers.last_length[games] = (
            self._score[games],
            self._length[games],
        )
        self._score[games], self._length[games] = 0, 0
        for game in games if self._again else ():
            self._start(self.tables[game], None)

    def _start(self, table: Table, seed: int | None) -> None:
        table.start(seed)
        if table.over:
            raise SparringError(f"{table.where}: there are no agents after a reset")
        if self.beat:
            self.beat()

    def _check(self) -> None:
        """Refuse what is not finite, wherever it is."""
        if np.isfinite(self.numbers).all() and np.isfinite(self.reward).all():
            return
        fine = np.isfinite(self.numbers).all(axis=2) & np.isfinite(self.reward)
        for game in np.flatnonzero(~fine.all(axis=1))[:1]:
            self.tables[game].check()

    def _show(self) -> None:
        """Ask whoever is to decide."""
        buffers = self.buffers
        buffers.seat[:] = [seat for table in self.tables for seat in table.deciding()]
        seat = np.maximum(buffers.seat, 0)  # rows that ask nobody show somebody's
        self.rules.layout.write(buffers.obs, self.numbers[self._game, seat])
        np.multiply(self.mask[self._game, seat], (buffers.seat >= 0)[:, None], out=buffers.mask)
