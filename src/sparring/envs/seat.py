"""Games with one learner at every table, seen from the learner's seat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparring.envs.illegal import Illegal
from sparring.errors import ConfigError, IllegalActionError
from sparring.games.rules import Rewards, Rules
from sparring.games.state import State
from sparring.machine import demand_memory
from sparring.pools import LEARNER, Lineup, Pool
from sparring.pools.limits import bytes_per_game

Opponents = str | Sequence[str] | None
"""Bots for the other seats: one name for all of them, or one each; None: random."""


class Ended(NamedTuple):
    """The E episodes that a step ended."""

    game: npt.NDArray[np.intp]
    seat: npt.NDArray[np.int64]
    """Where the learner sat."""
    obs: npt.NDArray[np.float32]
    """The last true observation of that seat."""
    mask: npt.NDArray[np.bool_]
    """Legal actions where the learner was still to act (truncation), else none."""
    score: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float32]
    """[E, seats], the game's own points."""
    end: npt.NDArray[np.object_]
    """Why, a name from `rules.ends`."""
    illegal: npt.NDArray[np.int64]
    """Illegal actions of the learner that were replaced."""


class Step(NamedTuple):
    """What a step brought to the learners of N games."""

    reward: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    ended: Ended | None


class LearnerSeats:
    """N games with one learner each, bots in the other seats, seats drawn for every episode."""

    def __init__(
        self,
        game: str | Rules,
        num_games: int,
        *,
        hold: bool,
        config: Mapping[str, Any] | None = None,
        opponents: Opponents = None,
        seed: int = 0,
        rewards: Rewards | None = None,
        threads: int | None = None,
        first_game: int = 0,
        illegal: str = "error",
        illegal_reward: float = 0.0,
        watch: bool = False,
    ) -> None:
        """Make the games.

        hold: a game that ended shows its last position until `reset`, or until the next `step`,
            which ignores its action; otherwise it restarts within the step that ended it.
        illegal, illegal_reward: see `Illegal`.
        watch: follow the games, so that `position` can show them to their end.
        """
        if num_games < 1:
            raise ConfigError(f"num_games={num_games} must be at least 1")
        self.rules = game if isinstance(game, Rules) else Rules(game, config)
        self.num_games = num_games
        self.hold = hold
        numbers = {"games": num_games, "seed": seed, "first_game": first_game}
        self.illegal = Illegal(self.rules, illegal, illegal_reward, **numbers)
        lineup = learner_lineup(self.rules, opponents)
        self.opponents = lineup.players[1:]
        if hold:  # each by itself is small
            each = bytes_per_game(self.rules)
            demand_memory("num_envs", num_games, each, f"these games of {self.rules.name}")
        # A pool steps all its games together, so a game that may wait needs one of its own.
        self._pools = [
            Pool(
                self.rules,
                1 if hold else num_games,
                seed=seed,
                threads=1 if hold else threads,
                lineups=[lineup],
                rewards=rewards,
                first_game=first_game + i,
            )
            for i in range(num_games if hold else 1)
        ]
        self._batches = [pool.batch() for pool in self._pools]
        self._twins: list[State | None] = [None] * (num_games if hold and watch else 0)
        """Copies of the games that are played alongside and stay at the end."""
        self.over = np.zeros(num_games, np.bool_)
        """Games on hold; their next episode waits in the pool."""
        self._look()

    def reset(self, seed: int | None = None, games: npt.NDArray[np.bool_] | None = None) -> None:
        """Start a new episode, with a seed its first one; `games` chooses some (if `hold`)."""
        chosen = np.ones(self.num_games, np.bool_) if games is None else games
        for i, pool in enumerate(self._pools):
            waiting = self.over[i] and seed is None
            if chosen[i] and not waiting:
                pool.reset(seed)
        for game in np.flatnonzero(chosen[: len(self._twins)]):
            self._twins[game] = self._pools[game].state_of(0)
        if seed is not None:
            self.illegal.restart(seed)
        self.illegal.count[chosen] = 0
        self.over &= ~chosen
        obs, mask, seat = self.obs, self.mask, self.seat
        self._look()
        self._show(self.over, obs[self.over], mask[self.over], seat[self.over])

    def step(self, actions: npt.ArrayLike) -> Step:
        """Answer for all learners at once. An illegal action refuses the whole step."""
        given = self._checked(actions)
        held, seat = self.over, self.seat
        given, wrong = self.illegal.replace(given, self.mask, held)
        self.illegal.count[held] = 0
        if len(self._pools) > 1:
            self._refuse_illegal(given, held)
        rows = self._in_rows(given)
        per_pool = len(rows) // len(self._pools)
        for i, pool in enumerate(self._pools):
            if not held[i]:
                pool.step(rows[i * per_pool : (i + 1) * per_pool])
        self._follow(rows, held)
        reward = self._gather("reward")[np.arange(self.num_games), seat, 0]
        reward[held] = 0
        reward[wrong] += self.illegal.reward
        terminated = self._gather("terminated") & ~held
        truncated = self._gather("truncated") & ~held
        self._look()
        ended = self._ended(np.flatnonzero(terminated | truncated), seat)
        if self.hold:
            self.over = terminated | truncated
            if ended is not None:
                self._show(ended.game, ended.obs, ended.mask, ended.seat)
        elif ended is not None:
            self.illegal.count[ended.game] = 0
        return Step(reward, terminated, truncated, ended)

    def position(self, game: int) -> State:
        """Return what a game looks like; one on hold is at its end (if `watch`)."""
        twin = self._twins[game] if self._twins else None
        if twin is not None:
            return twin
        pool = self._pools[game if self.hold else 0]
        return pool.state_of(0 if self.hold else game)

    def names(self, game: int) -> tuple[str, ...]:
        """Return who sits where, as far as it is known from outside."""
        others = set(self.opponents)
        known = str(*others) if len(others) == 1 else ""
        seats = range(self.rules.seats)
        return tuple("learner" if s == self.seat[game] else known or f"seat {s}" for s in seats)

    def _follow(self, rows: npt.NDArray[Any], held: npt.NDArray[np.bool_]) -> None:
        """Play the same in the copies: bots draw from the games' own streams in both."""
        count = self.rules.rows
        for i, twin in enumerate(self._twins):
            if held[i] or twin is None:  # its next episode began
                self._twins[i] = self._pools[i].state_of(0)
                continue
            given = rows[i * count : (i + 1) * count].copy()
            if not self.rules.box:
                others = (row for row in range(count) if i * count + row != self._row[i])
                for row in others:  # ignored, but looked at
                    given[row] = (twin.legal(row) or [0])[0]
            twin.apply(given if count > 1 else given[0])

    def _look(self) -> None:
        """Read what the learners see; the arrays are new each time."""
        policy = self._gather("policy").reshape(self.num_games, self.rules.rows)
        first = np.arange(self.num_games) * self.rules.rows
        self._row = first + (policy == LEARNER).argmax(axis=1)
        self.seat: npt.NDArray[np.int64] = self._gather("seat")[self._row].astype(np.int64)
        self.mask: npt.NDArray[np.bool_] = self._gather("mask")[self._row] != 0
        self.obs: npt.NDArray[np.float32] = self.rules.widen(self._gather("obs")[self._row])

    def _show(
        self,
        games: npt.NDArray[Any],
        obs: npt.NDArray[np.float32],
        mask: npt.NDArray[np.bool_],
        seat: npt.NDArray[np.int64],
    ) -> None:
        """Put last positions in front of the episodes that wait."""
        self.obs[games], self.mask[games], self.seat[games] = obs, mask, seat

    def _ended(self, game: npt.NDArray[np.intp], seat: npt.NDArray[np.int64]) -> Ended | None:
        if not len(game):
            return None
        batches = [self._batches[i] for i in game] if self.hold else self._batches
        at, own = np.arange(len(game)), seat[game]
        mask = np.concatenate([batch.final_mask for batch in batches])[at, own] != 0
        scores = np.concatenate([batch.final_score for batch in batches])
        reason = np.concatenate([batch.final_reason for batch in batches])
        return Ended(
            game=game,
            seat=own,
            obs=self.rules.widen(np.concatenate([b.final_obs for b in batches])[at, own]),
            mask=mask,
            score=scores[at, own].astype(np.float64),
            scores=scores,
            end=np.array(self.rules.ends, np.object_)[reason],
            illegal=self.illegal.count[game].copy(),
        )

    def _gather(self, name: str) -> npt.NDArray[Any]:
        """Copy one array of the pools; they overwrite theirs at the next step."""
        return np.concatenate([getattr(batch, name) for batch in self._batches])

    def _checked(self, actions: npt.ArrayLike) -> npt.NDArray[Any]:
        given = np.asarray(actions, np.float32 if self.rules.box else None)
        wanted = (self.num_games, self.rules.box) if self.rules.box else (self.num_games,)
        if given.shape != wanted:
            raise IllegalActionError(f"actions have shape {given.shape}, need {wanted}")
        if not self.rules.box and given.dtype.kind not in "iu":
            raise IllegalActionError(f"actions are {given.dtype}, need integers")
        return given

    def _in_rows(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.rules.rows == 1:
            return given
        rows = np.zeros((self.num_games * self.rules.rows, *given.shape[1:]), given.dtype)
        rows[self._row] = given
        return rows

    def _refuse_illegal(self, given: npt.NDArray[Any], held: npt.NDArray[np.bool_]) -> None:
        """Let the first pool with an illegal action raise before any other has moved."""
        if self.rules.box:
            legal = np.isfinite(given).all(axis=1)
        else:
            known = (given >= 0) & (given < self.rules.actions)
            legal = known & self.mask[np.arange(self.num_games), np.where(known, given, 0)]
        rows = self._in_rows(given)
        for i in np.flatnonzero(~legal & ~held)[:1]:
            self._pools[i].step(rows[i * self.rules.rows : (i + 1) * self.rules.rows])


def learner_lineup(rules: Rules, opponents: Opponents) -> Lineup:
    """Seat the learner among its opponents."""
    others = rules.seats - 1
    if opponents is None:
        names: tuple[str, ...] = ("random",) * others
    elif isinstance(opponents, str):
        names = (opponents,) * max(others, 1)
    else:
        names = tuple(opponents)
    if len(names) != others:
        raise ConfigError(
            f"{rules.name} has {others} seats beside the learner's, got opponents {names}"
        )
    return Lineup((LEARNER, *names))


def check_discrete(rules: Rules) -> None:
    """Refuse to make masks for a game that has none."""
    if rules.box:
        raise ConfigError(f"{rules.name} has continuous actions; there are no action masks")
