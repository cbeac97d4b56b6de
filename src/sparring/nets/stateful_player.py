"""Players of single games, with their memory from decision to decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.nets.roots import Roots, roots_in

Bytes = npt.NDArray[np.uint8]
Memories = dict[int, Bytes]
"""Memory by seat; seats that have not decided yet are missing."""


class BatchPlayer(Protocol):
    """Chooses actions for batches of rows, with or without memory: a policy, or a function."""

    name: str
    rules: Rules

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory per seat; 0: none."""

    def decide(
        self,
        obs: Bytes,
        mask: Bytes,
        memory: Bytes | None = None,
        *,
        greedy: bool = False,
        seed: int = 0,
        rollout: int = 0,
        step: int = 0,
        rows: npt.NDArray[Any] | None = None,
        roots: Roots | None = None,
    ) -> tuple[npt.NDArray[Any], Bytes]:
        """Return an action per row, and the next memory of each. roots: positions of the rows."""

    def check_fits(self, rules: Rules) -> None:
        """Raise if it cannot play a game of these rules."""


class StatefulPlayer:
    """Plays one game after another, decision by decision, in any seats, and keeps their memory.

    To take moves back, copy `memories` and assign the copy later: its arrays never change.
    """

    def __init__(self, player: BatchPlayer, *, skip_forced: bool = False) -> None:
        """Start with empty memory.

        skip_forced: play decisions with a single legal action without the player, as pools that
            skip them do; for states whose rules do not.
        """
        self.player, self.skip_forced = player, skip_forced
        self.memories: Memories = {}

    @property
    def name(self) -> str:
        return self.player.name

    def reset(self) -> None:
        """Clear the memory, before another game."""
        self.memories = {}

    def decide(self, seat: int, obs: Bytes, mask: Bytes, **options: Any) -> Any:
        """Return the action for a row [1, ...] and update memory. options: see `Policy.act`."""
        (action,), memory = self.player.decide(obs, mask, self.memory_of(seat), **options)
        self.memories[seat] = memory
        return action

    def memory_of(self, seat: int) -> Bytes:
        """Return the memory of a seat [1, memory_bytes]."""
        empty = np.zeros((1, self.player.memory_bytes), np.uint8)
        return self.memories.get(seat, empty)

    def action(
        self, state: State, *, row: int = 0, greedy: bool = True, seed: int = 0, step: int = 0
    ) -> Any:
        """Return the action for the seat to act, a number or an array, and update memory."""
        self.player.check_fits(state.rules)
        if self._is_forced(state, row):
            return state.legal(row)[0]
        obs, mask = state.decision(row)
        seat = state.native.seat(row)
        options: dict[str, Any] = {"seed": seed, "step": step, "roots": roots_in(state, row)}
        action = self.decide(seat, obs, mask, greedy=greedy, **options)
        return action if state.rules.box else int(action)

    def observe(self, state: State, row: int = 0) -> None:
        """Update memory for a decision that another player makes in this seat."""
        if self.player.memory_bytes and not self._is_forced(state, row):
            self.decide(state.native.seat(row), *state.decision(row), greedy=True)

    def _is_forced(self, state: State, row: int) -> bool:
        skips = self.skip_forced and not state.rules.box
        return skips and len(state.legal(row)) == 1


def max_memory_bytes(players: Sequence[BatchPlayer]) -> int:
    """Return the bytes of memory per (game, seat) that a pool of these players needs."""
    return max((player.memory_bytes for player in players), default=0)


def rows_read_by(player: BatchPlayer, rows: Bytes) -> Bytes:
    """Cut a pool's rows to the memory of one player: other players may have more."""
    return rows[:, : player.rules.obs_bytes + player.memory_bytes]
