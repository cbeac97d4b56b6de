"""Batch of a CPU pool: rows that need an action, results of the last step, and ended games."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sparring import _native


class Batch:
    """Views into a pool's arrays; the next step overwrites them."""

    def __init__(self, native: _native.Pool, slots: Sequence[int], rows: int) -> None:
        games = slice(native.group_begin(slots[0]), native.group_end(slots[-1]))
        row_range = slice(games.start * rows, games.stop * rows)
        self._native = native
        self._slots = slots
        self._first = games.start
        self.obs: npt.NDArray[np.uint8] = native.obs[row_range]
        """[R, row_bytes]; `rules.widen` decodes an observation to floats."""
        self.mask: npt.NDArray[np.uint8] = native.mask[row_range]
        """[R, actions], 1 where legal."""
        self.seat: npt.NDArray[np.int8] = native.seat[row_range]
        self.role: npt.NDArray[np.int8] = native.role[row_range]
        self.policy: npt.NDArray[np.int16] = native.policy[row_range]
        """Policy that must act; -1: none, the action is ignored."""
        self.reward: npt.NDArray[np.float32] = native.reward[games]
        """[N, seats, roles], rewards of the last step, for the episode that was running before."""
        self.skipped: npt.NDArray[np.uint16] = native.skipped[games]
        """[N, seats], forced decisions since the last step (skip_forced)."""
        self.record: npt.NDArray[np.uint32] = native.goal_result[games]
        """[N, seats], the encoded result of a goal that was reached or missed, 0 for none. Empty
        unless the pool keeps records."""
        self.terminated: npt.NDArray[np.bool_] = native.terminated[games]
        self.truncated: npt.NDArray[np.bool_] = native.truncated[games]

    def _ended(self) -> slice | npt.NDArray[np.intp]:
        """Indices of the ended games in the `final_*` arrays: the first ones of each slot."""
        starts = [self._native.group_begin(slot) for slot in self._slots]
        counts = [self._native.final_count(slot) for slot in self._slots]
        if len(starts) == 1:
            return slice(starts[0], starts[0] + counts[0])
        indices = [np.arange(s, s + c) for s, c in zip(starts, counts, strict=True)]
        return np.concatenate(indices)

    @property
    def final_game(self) -> npt.NDArray[np.int32]:
        """[E], games that have just ended, ascending, as indices into this batch."""
        return self._native.final_game[self._ended()] - np.int32(self._first)

    @property
    def final_obs(self) -> npt.NDArray[np.uint8]:
        """[E, seats, row_bytes], the terminal observation of every seat, before the reset."""
        return self._native.final_obs[self._ended()]

    @property
    def final_mask(self) -> npt.NDArray[np.uint8]:
        """[E, seats, actions], legal actions where a seat was still to act (truncation)."""
        return self._native.final_mask[self._ended()]

    @property
    def final_score(self) -> npt.NDArray[np.float32]:
        """[E, seats], final scores of the game."""
        return self._native.final_score[self._ended()]

    @property
    def final_policy(self) -> npt.NDArray[np.int16]:
        """[E, seats], players: a policy id, or below 0 a bot (see `Pool.player_name`)."""
        return self._native.final_policy[self._ended()]

    @property
    def final_length(self) -> npt.NDArray[np.int32]:
        """[E], decisions in the episode."""
        return self._native.final_length[self._ended()]

    @property
    def final_reason(self) -> npt.NDArray[np.uint8]:
        """[E], reason of the end, an index into `rules.ends`."""
        return self._native.final_reason[self._ended()]

    @property
    def final_moves(self) -> npt.NDArray[np.uint64]:
        """[E], a hash of all actions of the episode, including bots' and forced ones."""
        return self._native.final_action_hash[self._ended()]
