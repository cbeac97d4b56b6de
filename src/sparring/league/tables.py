"""The tables of a match: what is played at them, how far they are, and what they bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.pools.lineups import LEARNER, PlayerId
from sparring.pools.native import Pool


@dataclass(frozen=True)
class Plan:
    """What is played: how many deals, how many at once, from which seed, how they open."""

    deals: int
    parallel: int
    seed: int
    threads: int
    greedy: bool
    opening_plies: int


class Tables:
    """A pool whose tables each have a share of the deals, and how far they are."""

    def __init__(
        self, pool: Pool, share: npt.NDArray[np.intp], counted: PlayerId = LEARNER
    ) -> None:
        """Begin; `counted` is the player whose seats are counted."""
        self.pool, self.rules = pool, pool.rules
        pool.set_counting(counted)
        self.batch = pool.reset()
        self.share, self.left = share, share.copy()
        """[tables], deals that are still to be finished there."""
        self.some_finished = False
        rows = pool.num_games * self.rules.rows
        box = self.rules.box
        self.nothing = np.zeros((rows, box), np.float32) if box else np.zeros(rows, np.int32)

    def count(self, tables: npt.NDArray[Any]) -> None:
        """Note that a deal was finished at each of these tables."""
        self.left[tables] -= 1
        self.some_finished = not self.left.all()
        self.pool.left_out[tables] = self.left[tables] == 0

    def rows_of(self, policy: int) -> npt.NDArray[np.intp]:
        """Return the rows that a policy has to answer, at tables that still count."""
        mine = self.batch.policy == policy
        if self.some_finished:
            mine &= np.repeat(self.left > 0, self.rules.rows)
        return np.flatnonzero(mine)

    def remember(self, rows: npt.NDArray[np.intp], memory: npt.NDArray[np.uint8]) -> None:
        """Write what was remembered of rows [rows, bytes], to be shown with their seats' next."""
        size = memory.shape[1]
        if size:
            games = rows // self.rules.rows
            self.pool.memory[games, self.batch.seat[rows], :size] = memory

    def idle_actions(self) -> npt.NDArray[Any]:
        """Return actions for rows that nobody answers: any legal ones, the cheapest there are."""
        # Bots take none, so that it matters only where a table has finished its share.
        if self.some_finished and self.pool.policies:
            return self.pool.sample_actions()
        return self.nothing


class Score:
    """The sheets of one rotation, a line per deal."""

    def __init__(self, share: npt.NDArray[np.intp], seats: int) -> None:
        """Begin. share: [tables], deals of each."""
        self.share, deals = share, int(share.sum())
        self.score = np.zeros((deals, seats), np.float32)
        self.player = np.zeros((deals, seats), np.int16)
        self.length = np.zeros(deals, np.int32)
        self.end = np.zeros(deals, np.uint8)
        self.moves = np.zeros(deals, np.uint64)

    def take(self, tables: Tables, last_line: npt.NDArray[np.intp]) -> int:
        """Write down the games that just ended and still count; return how many.

        last_line: [tables], behind the last line of each.
        """
        batch = tables.batch
        ended = batch.final_game
        if not len(ended):
            return 0
        counted = tables.left[ended] > 0
        table = ended[counted]
        line = last_line[table] - tables.left[table]
        self.score[line] = batch.final_score[counted]
        self.player[line] = batch.final_policy[counted]
        self.length[line] = batch.final_length[counted]
        self.end[line] = batch.final_reason[counted]
        self.moves[line] = batch.final_moves[counted]
        tables.count(table)
        return len(table)
