"""N games with one learner each, from the learner's point of view."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparring.envs.illegal import IllegalActions
from sparring.envs.opponents import LocalGame, OpponentGroup, Opponents
from sparring.errors import ConfigError, IllegalActionError
from sparring.games.rules import Rewards, Rules
from sparring.games.state import State
from sparring.machine import check_memory_budget
from sparring.nets.roots import Roots
from sparring.pools import LEARNER, Pool
from sparring.pools.limits import bytes_per_game

MAX_OPPONENT_DECISIONS = 2**20
"""Decisions of opponents in a row after which an environment raises: the learner never acts."""


class Ended(NamedTuple):
    """The E episodes that ended in a step."""

    game: npt.NDArray[np.intp]
    seat: npt.NDArray[np.int64]
    """Seat of the learner."""
    obs: npt.NDArray[np.float32]
    """Last observation of that seat before the reset."""
    mask: npt.NDArray[np.bool_]
    """Legal actions if the learner was still to act (truncation), else none."""
    score: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float32]
    """[E, seats], the game's scores."""
    end: npt.NDArray[np.object_]
    """Why the episode ended, a name from `rules.ends`."""
    illegal: npt.NDArray[np.int64]
    """Illegal actions of the learner that were replaced."""


class Step(NamedTuple):
    """Result of a step for the learners of N games."""

    reward: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    ended: Ended | None


class StepAccumulator:
    """Accumulates rewards and ends of N games until every learner is to act again."""

    def __init__(self, games: int) -> None:
        self.reward = np.zeros(games, np.float32)
        self.terminated = np.zeros(games, np.bool_)
        self.truncated = np.zeros(games, np.bool_)
        self._ended: list[Ended] = []

    def end(self, ended: Ended) -> None:
        self._ended.append(ended)

    @property
    def over(self) -> npt.NDArray[np.bool_]:
        """Games whose episode ended."""
        return self.terminated | self.truncated

    def step(self) -> Step:
        """Return the accumulated step."""
        ended = self._ended[0] if self._ended else None
        if len(self._ended) > 1:
            ended = Ended(*map(np.concatenate, zip(*self._ended, strict=True)))
        return Step(self.reward, self.terminated, self.truncated, ended)


class LearnerSeats:
    """N games with one learner each and opponents in the other seats; seats are drawn per episode.

    Bots move inside the pools. Policies and functions act here, in one batch for all games
    that wait for them; games whose learner is to act wait meanwhile.
    """

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
        opponents: see `Opponents`.
        illegal, illegal_reward: see `IllegalActions`.
        watch: follow the games, so that `position` can show them to their end.
        """
        if num_games < 1:
            raise ConfigError(f"num_games={num_games} must be at least 1")
        self.rules = game if isinstance(game, Rules) else Rules(game, config)
        self.num_games = num_games
        self.hold = hold
        numbers = {"games": num_games, "first_game": first_game}
        self.illegal = IllegalActions(self.rules, illegal, illegal_reward, seed=seed, **numbers)
        self._opponents = OpponentGroup(self.rules, opponents, **numbers)
        self._opponents.restart(seed)
        # A game that may begin on its own needs a pool of its own; one that only waits, a slot.
        self._separate = hold or self._opponents.factory is not None
        self._grouped = not self._separate and self._opponents.answers
        if self._separate:  # each by itself is small
            each = bytes_per_game(self.rules)
            check_memory_budget("num_envs", num_games, each, f"these games of {self.rules.name}")
        self._pools = [
            Pool(
                self.rules,
                1 if self._separate else num_games,
                seed=seed,
                threads=1 if self._separate else threads,
                lineups=self._opponents.lineups,
                rewards=rewards,
                first_game=first_game + i,
                slots=num_games if self._grouped else 1,
            )
            for i in range(num_games if self._separate else 1)
        ]
        self._batches = [pool.batch() for pool in self._pools]
        self._copies: list[State | None] = [None] * (num_games if hold and watch else 0)
        """Copies of the games that are played alongside and stay at the end, for rendering."""
        self.over = np.zeros(num_games, np.bool_)
        """Games on hold; their next episode is ready in the pool."""
        self._fresh = np.zeros(num_games, np.bool_)
        """Games whose learner has not acted in this episode."""
        self._pending_reward = np.zeros((num_games, self.rules.seats), np.float32)
        """Rewards before that; they are added to the learner's first step."""
        self._read_learners()

    def reset(self, seed: int | None = None, games: npt.NDArray[np.bool_] | None = None) -> None:
        """Start a new episode, with a seed its first one; `games` chooses some (if `hold`)."""
        chosen = np.ones(self.num_games, np.bool_) if games is None else games
        if seed is not None:
            self.illegal.restart(seed)
            self._opponents.restart(seed)
        self._begin(np.flatnonzero(chosen), seed)
        self.illegal.count[chosen] = 0
        self.over &= ~chosen
        if self._opponents.answers:
            self._pending_reward[chosen], self._fresh[chosen] = 0, True
            self._play_until_learner(StepAccumulator(self.num_games), self.over)
        self._refresh_copies(np.flatnonzero(chosen))
        obs, mask, seat = self.obs, self.mask, self.seat
        self._read_learners()
        self._overwrite(self.over, obs[self.over], mask[self.over], seat[self.over])

    def step(self, actions: npt.ArrayLike) -> Step:
        """Play one action per learner. An illegal action raises and no game moves."""
        given = self._check_actions(actions)
        held = self.over
        given, wrong = self.illegal.replace(given, self.mask, held)
        self.illegal.count[held] = 0
        if self._separate or self._grouped:
            self._check_legal(given, held)
        if self._opponents.factory is not None:
            self._begin(np.flatnonzero(held))
        step_data = StepAccumulator(self.num_games)
        self._round(self._in_rows(given), np.flatnonzero(~held), step_data)
        if self._opponents.answers:
            self._play_until_learner(step_data, step_data.over)
        step_data.reward[wrong] += self.illegal.reward
        self._refresh_copies(np.flatnonzero(held))
        self._read_learners()
        step = step_data.step()
        if self.hold:
            self.over = step_data.over
            if step.ended is not None:
                self._overwrite(step.ended.game, step.ended.obs, step.ended.mask, step.ended.seat)
        elif step.ended is not None:
            self.illegal.count[step.ended.game] = 0
        return step

    def _begin(self, games: npt.NDArray[np.intp], seed: int | None = None) -> None:
        """Start episodes, with new players if there is a factory."""
        self._opponents.reset_memory(games)
        if not self._separate:
            self._pools[0].reset(seed)
            return
        factory = self._opponents.factory
        for game in map(int, games):
            waiting = self.over[game] and seed is None and factory is None
            if waiting:  # it began when the last one ended
                continue
            pool = self._pools[game]
            if factory is not None:
                local = LocalGame(self.rules, pool.first_game, partial(pool.state_of, 0))
                pool.set_lineups([self._opponents.draw(game, local)])
                self._pending_reward[game], self._fresh[game] = 0, True
            pool.reset(seed)

    def _play_until_learner(
        self, step_data: StepAccumulator, resting: npt.NDArray[np.bool_]
    ) -> None:
        """Play opponents until every learner is to act; games on hold stay."""
        actions = self._empty_actions()
        for _ in range(MAX_OPPONENT_DECISIONS):
            asked = (self._policies() == LEARNER).any(axis=1)
            games = np.flatnonzero(~asked & ~(resting | step_data.over) if self.hold else ~asked)
            if not len(games):
                return
            self._round(actions, games, step_data)
        raise ConfigError(
            f"{self.rules.name} game {games[0]}: the learner was not asked in "
            f"{MAX_OPPONENT_DECISIONS} decisions of others; change the opponents or the flags so "
            "that it has a choice"
        )

    def _round(
        self, actions: npt.NDArray[Any], games: npt.NDArray[np.intp], step_data: StepAccumulator
    ) -> None:
        """Step some games once, and accumulate their learners' rewards and ends."""
        fresh = self._fresh[games]
        if self._opponents.answers:
            self._opponents.answer(self._gather, self._roots, games, actions)
        followed = self._copied_actions(actions, games[~fresh])
        self._play(actions, games)
        for game, given in followed:
            self._copy_of(game).apply(given)
        paid = self._gather("reward")[games, :, 0]
        terminated, truncated = (self._gather(n)[games] for n in ("terminated", "truncated"))
        over = terminated | truncated
        asked = games[~fresh]
        seat = self.seat[asked]
        step_data.reward[asked] += paid[~fresh, seat] + self._pending_reward[asked, seat]
        self._pending_reward[asked] = 0
        step_data.terminated[asked], step_data.truncated[asked] = (
            terminated[~fresh],
            truncated[~fresh],
        )
        if over.any():
            self._opponents.reset_memory(games[over])
            if len(counted := games[over & ~fresh]):
                step_data.end(self._ended(counted))
            self._pending_reward[games[over]], self._fresh[games[over]] = 0, True
            if self._opponents.factory is not None:
                self._begin(games[over & fresh] if self.hold else games[over])
        self._pending_reward[games[fresh & ~over]] += paid[fresh & ~over]

    def _play(self, actions: npt.NDArray[Any], games: npt.NDArray[np.intp]) -> None:
        """Step some games, or all of a shared pool."""
        count = self.rules.rows
        if not self.rules.box:  # once, and not by every game
            limit = np.iinfo(np.int32)
            actions = np.clip(actions, limit.min, limit.max).astype(np.int32)
        if self._separate:
            for game in games:
                self._pools[game].step(actions[game * count : (game + 1) * count])
        elif self._grouped:
            (pool,) = self._pools
            for game in games.tolist():
                pool.send(actions[game * count : (game + 1) * count], game)
            for game in games.tolist():
                pool.recv(game)
        else:
            self._pools[0].step(actions)

    def position(self, game: int) -> State:
        """Return the state of a game; one on hold is at its end (if `watch`)."""
        copied = self._copies[game] if self._copies else None
        if copied is not None:
            return copied
        pool = self._pools[game if self._separate else 0]
        return pool.state_of(0 if self._separate else game)

    def names(self, game: int) -> tuple[str, ...]:
        """Return the players' names by seat, as far as they are known."""
        others = self._opponents.names if self._opponents.factory is None else []
        known = others[0] if len(others) == 1 else ""
        seats = range(self.rules.seats)
        return tuple("learner" if s == self.seat[game] else known or f"seat {s}" for s in seats)

    def _copied_actions(
        self, actions: npt.NDArray[Any], games: npt.NDArray[np.intp]
    ) -> list[tuple[int, npt.NDArray[Any]]]:
        """Return the actions for the copies: bots draw from the games' random streams in both."""
        if not self._copies:
            return []
        count, policy, played = self.rules.rows, self._policies(), []
        for game in map(int, games):
            given = actions[game * count : (game + 1) * count].copy()
            for row in np.flatnonzero(policy[game] < 0):  # ignored, but looked at
                if not self.rules.box:
                    given[row] = (self._copy_of(game).legal(int(row)) or [0])[0]
            played.append((game, given if count > 1 else given[0]))
        return played

    def _copy_of(self, game: int) -> State:
        copied = self._copies[game]
        assert copied is not None, "games are followed from their reset on"
        return copied

    def _refresh_copies(self, games: npt.NDArray[np.intp]) -> None:
        """Copy the games whose next episode has started."""
        for game in map(int, games[: len(self._copies)]):
            self._copies[game] = self._pools[game].state_of(0)

    def _read_learners(self) -> None:
        """Read observation, mask and seat of the learners into new arrays."""
        mine = self._policies() == LEARNER
        self._fresh = ~mine.any(axis=1)
        self._row = np.arange(self.num_games) * self.rules.rows + mine.argmax(axis=1)
        self.seat: npt.NDArray[np.int64] = self._gather("seat")[self._row].astype(np.int64)
        self.mask: npt.NDArray[np.bool_] = self._gather("mask")[self._row] != 0
        self.obs: npt.NDArray[np.float32] = self.rules.widen(self._gather("obs")[self._row])

    def _overwrite(
        self,
        games: npt.NDArray[Any],
        obs: npt.NDArray[np.float32],
        mask: npt.NDArray[np.bool_],
        seat: npt.NDArray[np.int64],
    ) -> None:
        """Overwrite games on hold with their last observation, mask and seat."""
        self.obs[games], self.mask[games], self.seat[games] = obs, mask, seat

    def _ended(self, game: npt.NDArray[np.intp]) -> Ended:
        """Return the episodes that just ended in these games."""
        batches = [self._batches[i] for i in game] if self._separate else self._batches
        at, own = np.arange(len(game)), self.seat[game]
        if self._grouped:  # what slots tell of games that ended before is still there
            at = np.flatnonzero(np.isin(batches[0].final_game, game))
        mask = np.concatenate([batch.final_mask for batch in batches])[at, own] != 0
        scores = np.concatenate([batch.final_score for batch in batches])
        reason = np.concatenate([batch.final_reason for batch in batches])
        return Ended(
            game=game,
            seat=own,
            obs=self.rules.widen(np.concatenate([b.final_obs for b in batches])[at, own]),
            mask=mask,
            score=scores[at, own].astype(np.float64),
            scores=scores[at],
            end=np.array(self.rules.ends, np.object_)[reason[at]],
            illegal=self.illegal.count[game].copy(),
        )

    def _roots(self, rows: npt.NDArray[np.intp]) -> Roots:
        """Return the positions of rows, for opponents that search."""
        if not self._separate:
            return [(self._pools[0], rows)]
        count = self.rules.rows
        return [(self._pools[row // count], np.array([row % count])) for row in rows]

    def _policies(self) -> npt.NDArray[np.int16]:
        """Return the policy id of every row [games, rows]."""
        return self._gather("policy").reshape(self.num_games, self.rules.rows)

    def _empty_actions(self) -> npt.NDArray[Any]:
        """Return a zero action for every row."""
        rows, box = self.num_games * self.rules.rows, self.rules.box
        return np.zeros((rows, box), np.float32) if box else np.zeros(rows, np.int32)

    def _gather(self, name: str) -> npt.NDArray[Any]:
        """Return a copy of one array of the pools, which they overwrite in the next step."""
        return np.concatenate([getattr(batch, name) for batch in self._batches])

    def _check_actions(self, actions: npt.ArrayLike) -> npt.NDArray[Any]:
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

    def _check_legal(self, given: npt.NDArray[Any], held: npt.NDArray[np.bool_]) -> None:
        """Raise for the first illegal action before any pool moves."""
        if self.rules.box:
            legal = np.isfinite(given).all(axis=1)
        else:
            known = (given >= 0) & (given < self.rules.actions)
            legal = known & self.mask[np.arange(self.num_games), np.where(known, given, 0)]
        wrong = np.flatnonzero(~legal & ~held)[:1]
        self._play(self._in_rows(given), wrong)


def check_discrete(rules: Rules) -> None:
    """Raise if a game has continuous actions, and so no masks."""
    if rules.box:
        raise ConfigError(f"{rules.name} has continuous actions; there are no action masks")
