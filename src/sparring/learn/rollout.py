"""Arrays of a rollout, truncated games, groups of games, and finished episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sparring import _native
from sparring.games.hidden import StateField
from sparring.games.rules import Rules
from sparring.learn.transitions import Transitions
from sparring.nets.heads import HIDDEN
from sparring.pools.lineups import FIRST_BOT, LEARNER, NO_POLICY
from sparring.pools.protocol import BatchLike, GamePool

Columns = Sequence[str] | Mapping[str, npt.DTypeLike]
"""Columns that a learner stores with every row: names of float32 numbers, or types by name, such as
("f2", actions) for a number per action."""
RECORD = "record"
"""Name of the goal results of pending transitions in snapshots."""


class Rollout:
    """The rows of a rollout, after places for pending transitions of the previous one."""

    def __init__(
        self,
        pool: GamePool,
        transitions: Transitions,
        steps: int,
        columns: Columns,
        *,
        pinned: bool = False,
        row_bytes: int = 0,
    ) -> None:
        """Allocate the arrays.

        columns: that a learner stores with every row.
        pinned: pin the observations, for asynchronous copies to a GPU.
        row_bytes: of the learner's rows; 0: those of the pool.
        """
        rules, places = pool.rules, transitions.places
        self.rows_per_game = rules.rows
        games, rows = pool.num_games, pool.num_games * pool.rules.rows
        self.obs = torch.zeros(
            (places, row_bytes or pool.row_bytes), dtype=torch.uint8, pin_memory=pinned
        ).numpy()
        self.mask = np.zeros((places, rules.actions), np.uint8)
        self.action: npt.NDArray[Any] = np.zeros(places, np.int32)
        if rules.box:  # as drawn, before bounds or squashing
            self.action = np.zeros((places, rules.box), np.float32)
        types = columns if isinstance(columns, Mapping) else dict.fromkeys(columns, np.float32)
        self.columns = {name: np.zeros(places, dtype) for name, dtype in types.items()}
        self.seat = np.zeros((steps, rows), np.int8)
        self.role = np.zeros((steps, rows), np.int8)
        self.policy = np.zeros((steps, rows), np.int16)
        self.reward = np.zeros((steps, games, rules.seats, len(rules.roles)), np.float32)
        self.skipped = np.zeros((steps, games, rules.seats), np.uint16)
        self.terminated = np.zeros((steps, games), np.bool_)
        self.truncated = np.zeros((steps, games), np.bool_)
        self.final_value = np.full((steps, games, rules.seats), np.nan, np.float32)
        self.final_role = np.full((steps, games, rules.seats), -1, np.int8)
        """Role to which the final value belongs, -1 without one."""
        self.truncations = Truncations()
        self.truth: StateField | None = None
        """Field of the game state that is stored with every row."""
        self.hidden = np.zeros((0, 0), np.uint8)
        """By place, the bytes of that field."""
        self.record: npt.NDArray[np.uint32] | None = None
        """[steps, games, seats], goal results; None without hindsight."""
        self.of_place: npt.NDArray[np.uint32] | None = None
        """By place, the result of the decision's goal, 0 if it is not known yet."""
        if getattr(pool, "records", False):
            self.record = np.zeros((steps, games, rules.seats), np.uint32)
            self.of_place = np.zeros(places, np.uint32)

    def pending_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays by place that pending transitions keep."""
        if self.of_place is None:
            return self.rows()
        return {**self.rows(), RECORD: self.of_place.view(np.int32)}

    def find_records(self, transitions: Transitions) -> None:
        """Fill the goal result of every decision: the next one of its seat."""
        if self.record is None or self.of_place is None:
            return
        steps, games, seats = self.record.shape
        _native.find_goal_results(
            seats=seats,
            chains=transitions.chains,
            seat=self.seat.reshape(steps, games, -1),
            terminated=self.terminated.view(np.uint8),
            truncated=self.truncated.view(np.uint8),
            goal_result=self.record,
            out=self.of_place,
        )

    def rows(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by place."""
        rows = {"obs": self.obs, "mask": self.mask, "action": self.action, **self.columns}
        return {**rows, HIDDEN: self.hidden} if self.truth else rows

    def track_truth(self, field: StateField | None) -> None:
        """Store a field of the game state with every row from now on."""
        if field:
            self.truth = field
            self.hidden = np.zeros((len(self.obs), field.bytes), np.uint8)

    def store_truth(self, pool: Any, games: slice, places: slice) -> None:
        """Store the field of `track_truth` for the rows of some games."""
        if self.truth:
            tables: npt.NDArray[np.uint8] = pool.tables[games, self.truth.byte_slice]
            self.hidden[places] = np.repeat(tables, self.rows_per_game, axis=0)

    def decisions(self) -> int:
        """Number of the learner's rows."""
        return int((self.policy == LEARNER).sum())

    def keep_pending(self, transitions: Transitions) -> None:
        """Move the rows of pending transitions to the front."""
        rows = transitions.pending_rows()
        pending_arrays = rows >= 0
        for array in self.pending_arrays().values():
            array[: transitions.max_pending][pending_arrays] = array[rows[pending_arrays]]


@dataclass
class Truncations:
    """Final observations of truncated games, of the seats that were to move."""

    where: list[npt.NDArray[np.intp]] = field(default_factory=list)
    """Flat indices into `final_value` [steps, games, seats]."""
    obs: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    mask: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    mirrored: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    """Whether the value, negated, also holds for the opponent of a zero-sum game."""

    def add(
        self, rules: Rules, step: int, first_game: int, batch: BatchLike, rollout: Rollout
    ) -> None:
        cut = np.flatnonzero(batch.truncated[batch.final_game])
        if not len(cut):
            return  # a lost game has no final observation
        games = batch.final_game[cut] + first_game
        movers, over = movers_of(rules, batch.final_mask[cut]), getattr(batch, "final_over", None)
        if over is not None:  # a custom env: seats that had left before get 0
            # With continuous actions there are no masks; the env tells who was still playing.
            movers = ~over[cut] if rules.box else movers & ~over[cut]
            place, seat = np.nonzero(over[cut])
            rollout.final_value[step, games[place], seat] = 0.0
        place, seat = np.nonzero(movers)
        count = rollout.final_value.shape[1]
        self.where.append((step * count + games[place]) * rules.seats + seat)
        self.obs.append(batch.final_obs[cut[place], seat].copy())
        self.mask.append(batch.final_mask[cut[place], seat].copy())
        self.mirrored.append(rules.zero_sum & (movers.sum(1)[place] == 1))

    def set_values(
        self,
        rollout: Rollout,
        value: npt.NDArray[np.float32],
        role: npt.NDArray[np.int8] | None = None,
    ) -> None:
        """Write bootstrap values of truncated games, and the roles that they belong to."""
        flat = rollout.final_value.reshape(-1)
        where, mirrored = np.concatenate(self.where), np.concatenate(self.mirrored)
        flat[where] = value
        flat[where[mirrored] ^ 1] = -value[mirrored]
        if role is not None:
            roles = rollout.final_role.reshape(-1)
            roles[where], roles[where[mirrored] ^ 1] = role, role[mirrored]


def movers_of(rules: Rules, mask: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Whether each seat was to move at the end, by the final masks [games, seats, actions]."""
    if rules.box:  # there are no masks; known only if all seats move at once
        return np.full(mask.shape[:2], rules.rows == rules.seats)
    moves: npt.NDArray[np.bool_] = np.any(mask, axis=2)
    return moves


@dataclass
class GameGroup:
    """Games of a pool that step together."""

    slot: int
    games: slice
    rows: slice
    batch: BatchLike


def groups_of(pool: GamePool) -> list[GameGroup]:
    """Return the groups of a pool."""
    rows = pool.rules.rows
    if pool.slots == 1:
        whole = slice(0, pool.num_games)
        return [GameGroup(0, whole, slice(0, pool.num_games * rows), pool.batch())]
    groups: list[GameGroup] = []
    for slot in range(pool.slots):
        batch = pool.batch(slot)
        first = groups[-1].games.stop if groups else 0
        games = slice(first, first + len(batch.terminated))
        groups.append(GameGroup(slot, games, slice(games.start * rows, games.stop * rows), batch))
    return groups


@dataclass(frozen=True)
class Episodes:
    """Finished games, one entry each."""

    game: npt.NDArray[np.int32]
    """Index in the pool."""
    length: npt.NDArray[np.int32]
    """Decisions of all seats."""
    end: npt.NDArray[np.uint8]
    """Why it ended, an index into `rules.ends`."""
    score: npt.NDArray[np.float32]
    """[games, seats]."""
    policy: npt.NDArray[np.int16]
    """[games, seats], policy ids: 0 is the learner, bots are below -1."""

    def __len__(self) -> int:
        return len(self.game)

    def met(self, policies: int, bots: int) -> npt.NDArray[np.int64]:
        """Count the learner's wins, draws and losses [policies + bots, 3].

        The score of each of its seats is compared with each seat of another player.
        """
        counts = np.zeros((policies + bots, 3), np.int64)
        seats = range(self.score.shape[1])
        for other in seats:
            player = self.policy[:, other].astype(np.intp)
            place = np.where(player >= 0, player, policies + FIRST_BOT - player)
            for mine in seats:
                both = (
                    (self.policy[:, mine] == LEARNER) & (player != LEARNER) & (player != NO_POLICY)
                )
                sign = np.sign(self.score[both, mine] - self.score[both, other]).astype(np.intp)
                np.add.at(counts, (place[both], 1 - sign), 1)
        return counts


def open_episodes(batch: BatchLike, first_game: int = 0) -> Episodes:
    return Episodes(
        batch.final_game + first_game,
        batch.final_length.copy(),
        batch.final_reason.copy(),
        batch.final_score.copy(),
        batch.final_policy.copy(),
    )


@dataclass
class FinishedGames:
    """The games that finished in a rollout."""

    batches: list[Episodes] = field(default_factory=list)

    def add(self, batch: BatchLike, first_game: int = 0) -> None:
        """Add the games that ended in a step."""
        if len(batch.final_game):
            self.batches.append(open_episodes(batch, first_game))

    def episodes(self) -> Episodes | None:
        """All of them in the order in which they ended; None if there is none."""
        if not self.batches:
            return None
        names = [item.name for item in fields(Episodes)]
        return Episodes(*(np.concatenate([getattr(b, n) for b in self.batches]) for n in names))

    def stats(self) -> dict[str, float]:
        """Metrics: means over games."""
        counts = self.episodes()
        if counts is None:
            return {"charts/games": 0.0}
        return {
            "charts/games": float(len(counts)),
            "charts/score": float(counts.score[counts.policy == LEARNER].mean()),
            "charts/length": float(counts.length.mean()),
        }
