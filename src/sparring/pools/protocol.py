"""Interface of all pools, as the learner and the trainer use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sparring.games.rules import Rewards, Rules
from sparring.pools.lineups import Lineup, Mixes
from sparring.pools.starts import Start

EXACT = "exact state"
"""Capability: games can be saved with a checkpoint."""

FIRST_READY = "first ready"
"""Capability: slots are stepped as each becomes ready, see `WaitsForAny`."""


class BatchLike(Protocol):
    """Rows that need an action, and results of the last step; see docs/reference/pools.md."""

    @property
    def obs(self) -> npt.NDArray[np.uint8]:
        """[R, row_bytes]; `rules.widen` decodes observations to floats."""

    @property
    def mask(self) -> npt.NDArray[np.uint8]:
        """[R, actions], 1 where legal."""

    @property
    def seat(self) -> npt.NDArray[np.int8]:
        """[R], the seat that decides; -1: none."""

    @property
    def role(self) -> npt.NDArray[np.int8]:
        """[R], the role in which it decides."""

    @property
    def policy(self) -> npt.NDArray[np.int16]:
        """[R], the policy that must act; -1: none, the action is ignored."""

    @property
    def reward(self) -> npt.NDArray[np.float32]:
        """[N, seats, roles], rewards of the last step, for the episode that was running before."""

    @property
    def skipped(self) -> npt.NDArray[np.uint16]:
        """[N, seats], forced decisions since the last step."""

    @property
    def terminated(self) -> npt.NDArray[np.bool_]:
        """[N], the rules ended the game."""

    @property
    def truncated(self) -> npt.NDArray[np.bool_]:
        """[N], the game was truncated; never together with `terminated`."""

    @property
    def final_game(self) -> npt.NDArray[np.int32]:
        """[E], games that have just ended, ascending."""

    @property
    def final_obs(self) -> npt.NDArray[np.uint8]:
        """[E, seats, row_bytes], the terminal observation of every seat, before the reset."""

    @property
    def final_mask(self) -> npt.NDArray[np.uint8]:
        """[E, seats, actions], legal actions where a seat was still to act (truncation)."""

    @property
    def final_score(self) -> npt.NDArray[np.float32]:
        """[E, seats], final scores of the game."""

    @property
    def final_policy(self) -> npt.NDArray[np.int16]:
        """[E, seats], players of the episode."""

    @property
    def final_length(self) -> npt.NDArray[np.int32]:
        """[E], decisions in the episode."""

    @property
    def final_reason(self) -> npt.NDArray[np.uint8]:
        """[E], reason of the end: an index into `rules.ends`."""


class GamePool(Protocol):
    """N games stepped together."""

    @property
    def rules(self) -> Rules:
        """Rules of the games."""

    @property
    def num_games(self) -> int:
        """Number of games, N."""

    @property
    def memory(self) -> npt.NDArray[np.uint8]:
        """[N, seats, memory_bytes], appended to a seat's next observation; may be written."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory per (game, seat), cleared at the game's reset."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row: observation and memory."""

    @property
    def slots(self) -> int:
        """Groups of games that `send` and `recv` step separately; 1 where there are none."""

    @property
    def policies(self) -> frozenset[int]:
        """Policy ids that may be seated."""

    @property
    def can(self) -> frozenset[str]:
        """Optional capabilities of this pool, such as "exact state"."""

    def reset(self, seed: int | None = None) -> BatchLike:
        """Reset every game; with a seed, to the games of that seed."""

    def step(self, action: npt.ArrayLike) -> BatchLike:
        """Step all games with one action per row. An illegal action refuses the whole step."""

    def batch(self, slot: int | None = None) -> BatchLike:
        """Return the current batch, of all games or of one slot, without stepping."""

    def send(self, action: npt.ArrayLike, slot: int = 0) -> None:
        """Send a slot's actions; `recv` waits for the result."""

    def recv(self, slot: int = 0) -> BatchLike:
        """Wait for a slot and return its batch."""

    @property
    def mixes(self) -> tuple[str, ...]:
        """Names of the mixes that `set_mixes` can fill."""

    def set_lineups(self, lineups: Sequence[Lineup], mixes: Sequence[str] = ()) -> None:
        """Set the line-ups; every game draws one at its next reset.

        mixes: names of further mixes that `set_mixes` can fill. Mixes that are named before and
            after keep their players.
        """

    def set_mixes(self, mixes: Mixes) -> None:
        """Set the players of mixes; a game draws from them when it starts."""

    def seated(self, policies: int) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id below `policies` holds in the running games."""

    def counts(self) -> npt.NDArray[np.int64]:
        """Return the counters of the rules at the learner's seats, by `rules.counters`."""

    def clear_counts(self) -> None:
        """Set all counters to 0."""

    def set_rewards(self, rewards: Rewards) -> None:
        """Set the weights of reward parts, from the next step on."""

    def set_config(self, **flags: Any) -> None:
        """Set flags that may change while games run; a game follows at its next reset."""

    def set_starts(self, starts: Sequence[Start]) -> None:
        """Set the start positions; every game draws one at its next reset. []: the default."""

    def sample_actions(self) -> Any:
        """Draw uniform legal actions for all rows."""

    def audit(self) -> str:
        """Return an error in any of the games, "" if none is found."""

    def state(self) -> bytes:
        """Return all games as bytes, if the pool has "exact state"."""

    def load_state(self, raw: bytes) -> BatchLike:
        """Continue from `state()`."""


class WaitsForAny(GamePool, Protocol):
    """A pool whose slots are stepped independently ("first ready")."""

    def ready(self, slots: Iterable[int], timeout_s: float | None = None) -> list[int]:
        """Wait until any of these slots, which were sent, can be received; return those.

        timeout_s: longest wait; the list may be empty then.
        """

    def stats(self) -> dict[str, float]:
        """Metrics of its processes."""

    def close(self) -> None:
        """End its processes."""
