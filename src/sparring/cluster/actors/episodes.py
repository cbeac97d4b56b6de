"""Rollouts of whole games: one game per index of the pool, from its start to its end.

Nothing is carried from one rollout to the next, and no game is played by two versions of the
weights. Steps after the first game of an index are discarded.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.games.seeds import derive_seed
from sparring.learn.collect import Collector
from sparring.learn.rollout import Episodes, Truncations, groups_of
from sparring.pools.lineups import LEARNER, NO_POLICY

NEVER = np.iinfo(np.int64).max


class WholeEpisodes(Collector):
    """Starts all games anew with every rollout, and keeps the first of every index."""

    unfinished = 0
    """Games of the last rollout that were left out because they took longer than it."""

    def __init__(self, *args: Any, seed: int, **options: Any) -> None:
        """seed: of the run; every rollout starts other games."""
        super().__init__(*args, **options)
        self.seed = seed

    def collect(self, number: int, *, reset_stats: bool = True) -> dict[str, float]:
        """Play rollout `number`, and keep the games that ended."""
        self.pool.reset(seed=derive_seed(self.seed, number, 1))
        self.groups = groups_of(self.pool)
        before = self.decisions, self.opponent_rows
        stats = super().collect(number)
        self._keep_whole()
        policy = self.rollout.policy
        self.decisions = before[0] + int((policy == LEARNER).sum())
        self.opponent_rows = before[1] + int((policy > LEARNER).sum())
        return {**stats, **self.finished.stats()}

    def _collect_in_order(self, number: int) -> None:
        """Play until all games have ended; pools with several groups play all steps."""
        if len(self.groups) > 1:
            super()._collect_in_order(number)
            return
        rollout, (group,) = self.rollout, self.groups
        rollout.policy.fill(NO_POLICY)
        rollout.terminated.fill(False)
        rollout.truncated.fill(False)
        over = np.zeros(self.pool.num_games, np.bool_)
        for step in range(self.steps):
            self._act_and_send(number, [(step, group)])
            self._receive(step, group)
            over |= rollout.terminated[step] | rollout.truncated[step]
            if over.all():
                break

    def _keep_whole(self) -> None:
        """Discard the steps after every index's first game, and games that did not end."""
        rollout, rows = self.rollout, self.pool.rules.rows
        ended = rollout.terminated | rollout.truncated
        steps = np.arange(self.steps)[:, None]
        last = np.where(ended.any(0), ended.argmax(0), NEVER)
        self.unfinished = int((last == NEVER).sum())
        self._keep_first_ends()
        self._keep_cuts(last)
        out = (steps > last) | (last == NEVER)
        rollout.policy[np.repeat(out, rows, axis=1)] = NO_POLICY
        for array in (rollout.reward, rollout.skipped, rollout.terminated, rollout.truncated):
            array[out] = 0
        rollout.final_value[out] = np.nan

    def _keep_first_ends(self) -> None:
        found = self.finished.episodes()
        if found is None:
            return
        _, first = np.unique(found.game, return_index=True)
        kept = np.sort(first)
        self.finished.batches = [
            Episodes(*(getattr(found, f.name)[kept] for f in fields(Episodes)))
        ]

    def _keep_cuts(self, last: npt.NDArray[np.int64]) -> None:
        """Of the truncations, keep those that ended an index's first game."""
        cuts, seats = self.rollout.truncations, self.pool.rules.seats
        if not cuts.where:
            return
        arrays: dict[str, npt.NDArray[Any]] = {
            one.name: np.concatenate(getattr(cuts, one.name)) for one in fields(Truncations)
        }
        step, game = np.divmod(arrays["where"] // seats, self.pool.num_games)
        kept = step == last[game]
        self.rollout.truncations = Truncations(
            **{name: [array[kept]] for name, array in arrays.items()}
        )
