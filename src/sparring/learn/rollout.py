"""What a rollout keeps: rows, groups of games that step by turns, cuts, and finished games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sparring import _native
from sparring.games.hidden import StateField
from sparring.games.rules import Rules
from sparring.learn.transitions import Transitions
from sparring.nets.net import HIDDEN
from sparring.pools.lineups import FIRST_BOT, LEARNER, NO_POLICY
from sparring.pools.protocol import BatchLike, GamePool

RECORD = "record"
"""What snapshots call the records of open decisions."""


class Rollout:
    """The rows of a rollout, behind the decisions carried over from the one before."""

    def __init__(
        self,
        pool: GamePool,
        transitions: Transitions,
        steps: int,
        columns: Sequence[str],
        *,
        pinned: bool = False,
    ) -> None:
        """Make the arrays.

        columns: what a learner keeps of every row besides its action, one number each.
        pinned: a GPU reads the observations, so that copies run beside other work.
        """
        rules, places = pool.rules, transitions.places
        self.rows_each = rules.rows
        games, rows = pool.num_games, pool.num_games * pool.rules.rows
        self.obs = torch.zeros(
            (places, pool.row_bytes), dtype=torch.uint8, pin_memory=pinned
        ).numpy()
        self.mask = np.zeros((places, rules.actions), np.uint8)
        self.action: npt.NDArray[Any] = np.zeros(places, np.int32)
        if rules.box:  # as drawn, before bounds or squashing
            self.action = np.zeros((places, rules.box), np.float32)
        self.columns = {name: np.zeros(places, np.float32) for name in columns}
        self.seat = np.zeros((steps, rows), np.int8)
        self.role = np.zeros((steps, rows), np.int8)
        self.policy = np.zeros((steps, rows), np.int16)
        self.reward = np.zeros((steps, games, rules.seats, len(rules.roles)), np.float32)
        self.skipped = np.zeros((steps, games, rules.seats), np.uint16)
        self.terminated = np.zeros((steps, games), np.bool_)
        self.truncated = np.zeros((steps, games), np.bool_)
        self.final_value = np.full((steps, games, rules.seats), np.nan, np.float32)
        self.final_role = np.full((steps, games, rules.seats), -1, np.int8)
        """In which role the final value was asked for, where there is one."""
        self.truncations = Truncations()
        self.truth: StateField | None = None
        """Bytes of the games' states that are kept with every row."""
        self.hidden = np.zeros((0, 0), np.uint8)
        """By place, what the game knew and the seat perhaps did not."""
        self.record: npt.NDArray[np.uint32] | None = None
        """[steps, games, seats], what came of goals; None where nobody asks."""
        self.of_place: npt.NDArray[np.uint32] | None = None
        """What came of every decision's goal, 0 where it is not settled yet."""
        if getattr(pool, "records", False):
            self.record = np.zeros((steps, games, rules.seats), np.uint32)
            self.of_place = np.zeros(places, np.uint32)

    def kept(self) -> dict[str, npt.NDArray[Any]]:
        """What decisions that are still open take along."""
        if self.of_place is None:
            return self.rows()
        return {**self.rows(), RECORD: self.of_place.view(np.int32)}

    def find_records(self, transitions: Transitions) -> None:
        """Say what came of every decision's goal: the first record of its seat behind it."""
        if self.record is None or self.of_place is None:
            return
        steps, games, seats = self.record.shape
        _native.find_records(
            seats=seats,
            chains=transitions.chains,
            seat=self.seat.reshape(steps, games, -1),
            terminated=self.terminated.view(np.uint8),
            truncated=self.truncated.view(np.uint8),
            record=self.record,
            out=self.of_place,
        )

    def rows(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that have one entry per place."""
        rows = {"obs": self.obs, "mask": self.mask, "action": self.action, **self.columns}
        return {**rows, HIDDEN: self.hidden} if self.truth else rows

    def want_truth(self, field: StateField | None) -> None:
        """Keep a field of the games' states with every row from now on."""
        if field:
            self.truth = field
            self.hidden = np.zeros((len(self.obs), field.bytes), np.uint8)

    def keep_truth(self, pool: Any, games: slice, places: slice) -> None:
        """Keep what games know while rows of theirs are asked, if anybody wants to know it."""
        if self.truth:
            tables: npt.NDArray[np.uint8] = pool.tables[games, self.truth.stretch]
            self.hidden[places] = np.repeat(tables, self.rows_each, axis=0)

    def decisions(self) -> int:
        """How many of the rows the learner answered."""
        return int((self.policy == LEARNER).sum())

    def keep_pending(self, transitions: Transitions) -> None:
        """Move the rows of decisions that are still open to the front."""
        rows = transitions.pending_rows()
        kept = rows >= 0
        for array in self.kept().values():
            array[: transitions.max_pending][kept] = array[rows[kept]]


@dataclass
class Truncations:
    """Where games were cut while somebody was to move, and what was seen there."""

    where: list[npt.NDArray[np.intp]] = field(default_factory=list)
    """Places in `final_value`, counted through [steps, games, seats]."""
    obs: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    mask: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    mirrored: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    """Whether the other seat loses what this one wins, and was not to move itself."""

    def add(
        self, rules: Rules, step: int, first_game: int, batch: BatchLike, rollout: Rollout
    ) -> None:
        cut = np.flatnonzero(batch.truncated[batch.final_game])
        if not len(cut):
            return  # of games that were lost nobody saw a last position
        games = batch.final_game[cut] + first_game
        movers, over = movers_of(rules, batch.final_mask[cut]), getattr(batch, "final_over", None)
        if over is not None:  # a custom env: seats that were out before the cut get nothing
            # With continuous actions there are no masks; it tells whose part was cut instead.
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
        """Write what the seats that were to move would still have been paid, and in which role."""
        flat = rollout.final_value.reshape(-1)
        where, mirrored = np.concatenate(self.where), np.concatenate(self.mirrored)
        flat[where] = value
        flat[where[mirrored] ^ 1] = -value[mirrored]
        if role is not None:
            roles = rollout.final_role.reshape(-1)
            roles[where], roles[where[mirrored] ^ 1] = role, role[mirrored]


def movers_of(rules: Rules, mask: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Whether each seat was to move when games were cut, by their last masks [games, seats, A]."""
    if rules.box:  # there are no masks; known only where all seats move at once
        return np.full(mask.shape[:2], rules.rows == rules.seats)
    moves: npt.NDArray[np.bool_] = np.any(mask, axis=2)
    return moves


@dataclass
class GameGroup:
    """The games of one slot: which they are, and their rows now."""

    slot: int
    games: slice
    rows: slice
    batch: BatchLike


def groups_of(pool: GamePool) -> list[GameGroup]:
    """One group per slot; a pool without slots is one group."""
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
    """Games that finished, a line each."""

    game: npt.NDArray[np.int32]
    """Which of the pool's games."""
    length: npt.NDArray[np.int32]
    """Decisions of all seats."""
    end: npt.NDArray[np.uint8]
    """Why it ended, an index into `rules.ends`."""
    score: npt.NDArray[np.float32]
    """[games, seats]."""
    policy: npt.NDArray[np.int16]
    """[games, seats], who sat there: 0 is the learner, bots are below -1."""

    def __len__(self) -> int:
        return len(self.game)

    def met(self, policies: int, bots: int) -> npt.NDArray[np.int64]:
        """Count what the learner won, drew and lost [policies + bots, 3].

        By score, each of its seats against each seat of somebody else.
        """
        found = np.zeros((policies + bots, 3), np.int64)
        seats = range(self.score.shape[1])
        for other in seats:
            player = self.policy[:, other].astype(np.intp)
            place = np.where(player >= 0, player, policies + FIRST_BOT - player)
            for mine in seats:
                both = (
                    (self.policy[:, mine] == LEARNER) & (player != LEARNER) & (player != NO_POLICY)
                )
                ahead = np.sign(self.score[both, mine] - self.score[both, other]).astype(np.intp)
                np.add.at(found, (place[both], 1 - ahead), 1)
        return found


def open_episodes(batch: BatchLike, first_game: int = 0) -> Episodes:
    """Copy the games that ended in a step."""
    return Episodes(
        batch.final_game + first_game,
        batch.final_length.copy(),
        batch.final_reason.copy(),
        batch.final_score.copy(),
        batch.final_policy.copy(),
    )


@dataclass
class FinishedEpisodes:
    """The games that finished in a rollout, and what they brought the learner."""

    batches: list[Episodes] = field(default_factory=list)

    def add(self, batch: BatchLike, first_game: int = 0) -> None:
        """Note the games that ended in this step."""
        if len(batch.final_game):
            self.batches.append(open_episodes(batch, first_game))

    def episodes(self) -> Episodes | None:
        """All of them in the order of their ends, None if there was none."""
        if not self.batches:
            return None
        names = [item.name for item in fields(Episodes)]
        return Episodes(*(np.concatenate([getattr(b, n) for b in self.batches]) for n in names))

    def stats(self) -> dict[str, float]:
        """Means over games, as curves show them."""
        found = self.episodes()
        if found is None:
            return {"charts/games": 0.0}
        return {
            "charts/games": float(len(found)),
            "charts/score": float(found.score[found.policy == LEARNER].mean()),
            "charts/length": float(found.length.mean()),
        }
