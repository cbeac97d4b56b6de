"""Playing the games of some tables, in whatever process they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import SparringError
from sparring.pools.foreign.base import check_finite
from sparring.pools.foreign.rules import ForeignRules
from sparring.pools.foreign.sheet import CUT, OVER, RUNNING, Sheet
from sparring.pools.foreign.tables import Table

NOTHING = np.zeros(0)


class Playing:
    """Steps tables one after the other and writes what comes of it onto their sheet."""

    def __init__(
        self,
        tables: Sequence[Table],
        rules: ForeignRules,
        sheet: Sheet,
        beat: Callable[[], None] | None = None,
    ) -> None:
        """Take over tables. beat: called whenever one of them has answered."""
        self.tables, self.rules, self.sheet, self.beat = tuple(tables), rules, sheet, beat
        self._numbers = sheet.obs.view(np.float32)[:, : rules.numbers]
        self._last_numbers = sheet.last_obs.view(np.float32)[..., : rules.numbers]
        self._score = np.zeros((len(tables), rules.seats))
        self._length = np.zeros(len(tables), np.int32)
        self._asked = np.zeros(len(tables), np.int32)
        """Decisions that each game asks for now."""

    def start(self, seeds: Sequence[int | None]) -> None:
        """Start an episode at every table; without a seed the env goes on with its own numbers."""
        sheet = self.sheet
        for array in (sheet.reward, self._score, self._length):
            array.fill(0)
        sheet.end.fill(RUNNING)
        for game, (table, seed) in enumerate(zip(self.tables, seeds, strict=True)):
            table.steps = 0
            self._start(table, seed)
            self._show(game, table)
            if self.beat:
                self.beat()

    def step(self, action: npt.NDArray[Any]) -> None:
        """Answer all rows; what ends begins anew. Actions for nobody are ignored."""
        rows, sheet = self.rules.rows, self.sheet
        own = self.rules.env_actions(action)
        sheet.end.fill(RUNNING)
        self._length += self._asked
        for game, table in enumerate(self.tables):
            table.reward.fill(0)
            table.play(own[game * rows : (game + 1) * rows])
            check_finite(table.where, NOTHING, table.reward)
            sheet.reward[game] = table.reward
            self._score[game] += table.reward
            if table.over:
                self._end(game, table)
                self._start(table, None)
            self._show(game, table)
            if self.beat:
                self.beat()

    def _end(self, game: int, table: Table) -> None:
        """Write down an episode that is over."""
        sheet = self.sheet
        sheet.end[game] = CUT if table.truncated.any() else OVER
        self._last_numbers[game] = table.numbers
        sheet.last_mask[game] = table.mask * table.truncated[:, None]
        sheet.last_over[game] = ~table.truncated
        sheet.last_score[game], sheet.last_length[game] = self._score[game], self._length[game]
        self._score[game], self._length[game] = 0, 0

    def _start(self, table: Table, seed: int | None) -> None:
        table.start(seed)
        if table.over:
            raise SparringError(f"{table.where}: there are no agents after a reset")

    def _show(self, game: int, table: Table) -> None:
        """Ask whoever is to decide."""
        sheet, rows, asked = self.sheet, self.rules.rows, 0
        for row, seat in enumerate(table.deciding(), start=game * rows):
            sheet.seat[row] = seat
            if seat < 0:
                sheet.mask[row] = 0
            else:
                asked += 1
                self._numbers[row], sheet.mask[row] = table.numbers[seat], table.mask[seat]
        self._asked[game] = asked
