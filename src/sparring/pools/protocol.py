"""What the learner and the trainer need of a pool; native and custom ones both have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sparring.games.rules import Rewards, Rules
from sparring.pools.lineups import Lineup, Mixes
from sparring.pools.starts import Start

EXACT = "exact state"
"""What a pool must be able to do for its games to be part of a checkpoint."""

FIRST_READY = "first ready"
"""What a pool must be able to do for its slots to be played as each is ready: `WaitsForAny`."""


class BatchLike(Protocol):
    """The rows that ask for a decision and what the last step brought. docs/pools.md has more."""

    @property
    def obs(self) -> npt.NDArray[np.uint8]:
        """[R, row_bytes]; `rules.widen` turns the observations in them into numbers."""

    @property
    def mask(self) -> npt.NDArray[np.uint8]:
        """[R, actions], 1 where legal."""

    @property
    def seat(self) -> npt.NDArray[np.int8]:
        """[R], who decides; -1 if nobody does."""

    @property
    def role(self) -> npt.NDArray[np.int8]:
        """[R], in what capacity."""

    @property
    def policy(self) -> npt.NDArray[np.int16]:
        """[R], which policy must act; -1: nobody, the action is ignored."""

    @property
    def reward(self) -> npt.NDArray[np.float32]:
        """[N, seats, roles], paid since the previous step to the episode that was running."""

    @property
    def skipped(self) -> npt.NDArray[np.uint16]:
        """[N, seats], forced decisions that were played in between."""

    @property
    def terminated(self) -> npt.NDArray[np.bool_]:
        """[N], the rules ended the game."""

    @property
    def truncated(self) -> npt.NDArray[np.bool_]:
        """[N], the game was cut; never together with `terminated`."""

    @property
    def final_game(self) -> npt.NDArray[np.int32]:
        """[E], the games that just ended, ascending."""

    @property
    def final_obs(self) -> npt.NDArray[np.uint8]:
        """[E, seats, row_bytes], the last true observation of every seat of those games."""

    @property
    def final_mask(self) -> npt.NDArray[np.uint8]:
        """[E, seats, actions], legal actions where a seat was still to act (truncation)."""

    @property
    def final_score(self) -> npt.NDArray[np.float32]:
        """[E, seats], the game's own points."""

    @property
    def final_policy(self) -> npt.NDArray[np.int16]:
        """[E, seats], who sat there."""

    @property
    def final_length(self) -> npt.NDArray[np.int32]:
        """[E], decisions of the episode."""

    @property
    def final_reason(self) -> npt.NDArray[np.uint8]:
        """[E], why it ended: an index into `rules.ends`."""


class GamePool(Protocol):
    """N games stepped together."""

    @property
    def rules(self) -> Rules:
        """What does not change while the games are played."""

    @property
    def num_games(self) -> int:
        """N."""

    @property
    def memory(self) -> npt.NDArray[np.uint8]:
        """[N, seats, memory_bytes], shown behind a seat's next observation; may be written."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory per (game, seat): outside the game, cleared at its reset."""

    @property
    def row_bytes(self) -> int:
        """Length of a row of observations, memory included."""

    @property
    def slots(self) -> int:
        """Groups of games that `send` and `recv` step separately; 1 where there are none."""

    @property
    def policies(self) -> frozenset[int]:
        """The ids that sit at tables; somebody has to answer their rows."""

    @property
    def can(self) -> frozenset[str]:
        """What this pool is able to do that others may not be, such as "exact state"."""

    def reset(self, seed: int | None = None) -> BatchLike:
        """Start a new episode in every game; with a seed, the games of that seed."""

    def step(self, action: npt.ArrayLike) -> BatchLike:
        """Answer all rows at once. An illegal action refuses the whole step."""

    def batch(self, slot: int | None = None) -> BatchLike:
        """Return the current rows, of all games or of one slot, without stepping."""

    def send(self, action: npt.ArrayLike, slot: int = 0) -> None:
        """Hand over a slot's actions; `recv` waits for them."""

    def recv(self, slot: int = 0) -> BatchLike:
        """Wait for a slot and return its rows."""

    @property
    def mixes(self) -> tuple[str, ...]:
        """The names of the mixes that may be filled."""

    def set_lineups(self, lineups: Sequence[Lineup], mixes: Sequence[str] = ()) -> None:
        """Choose who plays; every game draws one of them at its next reset.

        mixes: others than those that line-ups name, which may be filled too. Mixes that are named
            before and after keep who is in them.
        """

    def set_mixes(self, mixes: Mixes) -> None:
        """Choose who is drawn from the mixes that line-ups name, when games begin."""

    def seated(self, policies: int) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id below `policies` holds in the running games."""

    def counts(self) -> npt.NDArray[np.int64]:
        """Return what the rules counted at the learner's seats, by `rules.counters`."""

    def clear_counts(self) -> None:
        """Count from 0 again."""

    def set_rewards(self, rewards: Rewards) -> None:
        """Change the weight of reward parts, from the next step on."""

    def set_config(self, **flags: Any) -> None:
        """Change flags that may change while games run; each game follows at its next reset."""

    def set_starts(self, starts: Sequence[Start]) -> None:
        """Choose where games begin; every game draws one at its next reset. None: as usual."""

    def sample_actions(self) -> Any:
        """Draw uniform legal actions for all rows."""

    def audit(self) -> str:
        """Return what is wrong with any of the games, "" if nothing is known to be."""

    def state(self) -> bytes:
        """Return all games, if the pool can ("exact state")."""

    def load_state(self, raw: bytes) -> BatchLike:
        """Continue from `state()`."""


class WaitsForAny(GamePool, Protocol):
    """A pool whose slots step at their own pace ("first ready")."""

    def ready(self, slots: Iterable[int], timeout_s: float | None = None) -> list[int]:
        """Wait until any of these slots, which were sent, can be received; return those that can.

        timeout_s: how long at most; none may be there then.
        """

    def stats(self) -> dict[str, float]:
        """How its processes fare, as curves show it."""

    def close(self) -> None:
        """End whatever works for it."""
