"""Players in single games: what they remember is kept here, from decision to decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sparring.games.rules import Rules
from sparring.games.state import State

Bytes = npt.NDArray[np.uint8]
Memories = dict[int, Bytes]
"""What is remembered, by seat; seats that have not decided yet are missing."""


class BatchPlayer(Protocol):
    """Who answers rows in batches and may remember: a policy, or a function as a player."""

    name: str
    rules: Rules

    @property
    def memory_bytes(self) -> int:
        """What it remembers of each seat; 0: nothing."""

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
    ) -> tuple[npt.NDArray[Any], Bytes]:
        """Return an action per row, and what is remembered of each."""

    def check_fits(self, rules: Rules) -> None:
        """Refuse a game that it cannot play."""


class StatefulPlayer:
    """Somebody who plays one game after another, decision by decision, in any of its seats.

    `held` may be copied, and put back where moves are taken back: what is in it never changes.
    """

    def __init__(self, player: BatchPlayer, *, skip_forced: bool = False) -> None:
        """Remember nothing yet.

        skip_forced: decisions without a choice are played without being noticed, as in pools that
            skip them; for whoever plays by rules that do not.
        """
        self.player, self.skip_forced = player, skip_forced
        self.held: Memories = {}

    @property
    def name(self) -> str:
        """What the player is called."""
        return self.player.name

    def reset(self) -> None:
        """Forget everything: another game begins."""
        self.held = {}

    def decide(self, seat: int, obs: Bytes, mask: Bytes, **how: Any) -> Any:
        """Return the action of a row [1, ...], and remember it. how: see `Policy.act`."""
        (action,), memory = self.player.decide(obs, mask, self.before(seat), **how)
        self.held[seat] = memory
        return action

    def before(self, seat: int) -> Bytes:
        """What is remembered of a seat's decisions so far [1, memory_bytes]."""
        nothing = np.zeros((1, self.player.memory_bytes), np.uint8)
        return self.held.get(seat, nothing)

    def action(
        self, state: State, *, row: int = 0, greedy: bool = True, seed: int = 0, step: int = 0
    ) -> Any:
        """Return the action for the seat to act: a number, or an array of them; remember it."""
        self.player.check_fits(state.rules)
        if self._is_forced(state, row):
            return state.legal(row)[0]
        obs, mask = state.decision(row)
        how: dict[str, Any] = {"greedy": greedy, "seed": seed, "step": step}
        action = self.decide(state.native.seat(row), obs, mask, **how)
        return action if state.rules.box else int(action)

    def follow(self, state: State, row: int = 0) -> None:
        """Remember a decision that somebody else makes in this seat."""
        if self.player.memory_bytes and not self._is_forced(state, row):
            self.decide(state.native.seat(row), *state.decision(row), greedy=True)

    def _is_forced(self, state: State, row: int) -> bool:
        skips = self.skip_forced and not state.rules.box
        return skips and len(state.legal(row)) == 1


def max_memory_bytes(players: Sequence[BatchPlayer]) -> int:
    """Bytes per (game, seat) of a pool in which all of these can sit."""
    return max((player.memory_bytes for player in players), default=0)


def rows_read_by(player: BatchPlayer, rows: Bytes) -> Bytes:
    """The rows of a pool, cut to what a player reads: others at the table may remember more."""
    return rows[:, : player.rules.obs_bytes + player.memory_bytes]
