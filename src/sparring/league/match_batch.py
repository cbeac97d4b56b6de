"""Games of a match that are played at once, their scores, and some of them as replays."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import SparringError
from sparring.games.decisions import same_position
from sparring.games.recorded import Replay
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.pools.lineups import LEARNER, PlayerId, player_name
from sparring.pools.native import Pool


@dataclass(frozen=True)
class MatchSettings:
    """Number of deals, games played at once, seed, threads and openings of a match."""

    deals: int
    parallel: int
    seed: int
    threads: int
    greedy: bool
    opening_plies: int


class MatchBatch:
    """A pool of games for one rotation of the seats; each game plays its quota of deals."""

    def __init__(
        self, pool: Pool, quota: npt.NDArray[np.intp], counted: PlayerId = LEARNER
    ) -> None:
        """Reset the pool.

        quota: [games], deals that each game of the pool plays.
        counted: the player for whose seats the rules count statistics.
        """
        self.pool, self.rules = pool, pool.rules
        pool.set_counting(counted)
        self.batch = pool.reset()
        self.quota, self.remaining = quota, quota.copy()
        """[games], deals to play in all, and those that are not finished."""
        self.some_finished = False
        rows = pool.num_games * self.rules.rows
        box = self.rules.box
        self.zero_actions = np.zeros((rows, box), np.float32) if box else np.zeros(rows, np.int32)

    def finish_deals(self, games: npt.NDArray[Any]) -> None:
        """Count one finished deal for each of these games."""
        self.remaining[games] -= 1
        self.some_finished = not self.remaining.all()
        self.pool.left_out[games] = self.remaining[games] == 0

    def rows_of(self, policy: int) -> npt.NDArray[np.intp]:
        """Return the rows of a policy in games that have not finished their quota."""
        rows = self.batch.policy == policy
        if self.some_finished:
            rows &= np.repeat(self.remaining > 0, self.rules.rows)
        return np.flatnonzero(rows)

    def store_memory(self, rows: npt.NDArray[np.intp], memory: npt.NDArray[np.uint8]) -> None:
        """Store recurrent memory [rows, bytes]; the pool adds it to the seats' next observation."""
        size = memory.shape[1]
        if size:
            games = rows // self.rules.rows
            self.pool.memory[games, self.batch.seat[rows], :size] = memory

    def default_actions(self) -> npt.NDArray[Any]:
        """Return actions for rows that no policy answers."""
        # The pool ignores them for bots; only games that finished their quota need legal ones.
        if self.some_finished and self.pool.policies:
            return self.pool.sample_actions()
        return self.zero_actions


class DealScores:
    """Results of one rotation, one line per deal."""

    def __init__(self, quota: npt.NDArray[np.intp], seats: int) -> None:
        """Allocate the arrays. quota: [games], deals of each."""
        self.quota, deals = quota, int(quota.sum())
        self.score = np.zeros((deals, seats), np.float32)
        self.player = np.zeros((deals, seats), np.int16)
        self.length = np.zeros(deals, np.int32)
        self.end = np.zeros(deals, np.uint8)
        self.action_hash = np.zeros(deals, np.uint64)

    def add_finished(self, games: MatchBatch, line_ends: npt.NDArray[np.intp]) -> int:
        """Store the games that ended in the last step; return their number.

        line_ends: [games], one past the last line of each game.
        """
        batch = games.batch
        ended = batch.final_game
        if not len(ended):
            return 0
        counted = games.remaining[ended] > 0
        game = ended[counted]
        line = line_ends[game] - games.remaining[game]
        self.score[line] = batch.final_score[counted]
        self.player[line] = batch.final_policy[counted]
        self.length[line] = batch.final_length[counted]
        self.end[line] = batch.final_reason[counted]
        self.action_hash[line] = batch.final_moves[counted]
        games.finish_deals(game)
        return len(game)


@dataclass
class ReplayRecorder:
    """Records games of a match as replays.

    A match plays many games at once, with bots and forced moves inside the native step. So only the
    actions of policies are recorded while it runs. Everything else follows from (seed, game): the
    recorder plays each game again on its own, with the same random numbers for bots, and keeps the
    replay only if scores, end and length are those of the match. That works for the first game in
    each row of the pool; by default these are all games of a match.
    """

    max_games: int
    """The first deals are recorded, each from every seat."""
    replays: list[Replay] = field(default_factory=list)
    seats: list[int] = field(default_factory=list)
    """Seat of the first player of the match, by replay."""
    failed: int = 0
    """Games whose second playthrough had another result, as after an opening drawn anew."""
    actions: dict[tuple[int, int], deque[Any]] = field(default_factory=dict)
    """Actions of policies, by (rotation, game)."""

    def record(self, rotation: int, games: MatchBatch, actions: npt.NDArray[Any]) -> None:
        """Record the policies' actions in the first games of a rotation."""
        rules = games.rules
        count = min(self.games_of(rules), games.pool.num_games)
        by_policy = games.batch.policy[: count * rules.rows].reshape(count, rules.rows) >= 0
        in_first_deal = games.remaining[:count] == games.quota[:count]
        by_game = actions[: count * rules.rows].reshape(count, rules.rows, *actions.shape[1:])
        for game in np.flatnonzero(by_policy.any(1) & in_first_deal):
            self.actions.setdefault((rotation, int(game)), deque()).append(by_game[game].copy())

    def games_of(self, rules: Rules) -> int:
        return -(-self.max_games // rules.seats)

    def make_replays(
        self,
        rules: Rules,
        names: Mapping[int, str],
        rotations: Sequence[DealScores],
        settings: MatchSettings,
    ) -> None:
        """Play the recorded games again. names: of policies, by id."""
        first_lines = np.concatenate([[0], np.cumsum(rotations[0].quota)[:-1]])
        count = min(self.games_of(rules), len(first_lines))
        wanted = [(game, rotation) for game in range(count) for rotation in range(rules.seats)]
        for game, rotation in wanted[: self.max_games]:
            scores, line = rotations[rotation], int(first_lines[game])
            actions = self.actions.pop((rotation, game), deque())
            try:
                replay = replay_game(
                    rules, game, settings, players=scores.player[line], names=names, actions=actions
                )
            except (SparringError, IndexError):
                self.failed += 1
                continue
            reason = rules.ends[scores.end[line]]
            score = tuple(float(value) for value in scores.score[line])
            if (score, reason, scores.length[line]) != (
                replay.scores,
                replay.end,
                len(replay.actions),
            ):
                self.failed += 1
                continue
            self.replays.append(replay)
            self.seats.append(rotation)


def replay_game(
    rules: Rules,
    game: int,
    settings: MatchSettings,
    *,
    players: npt.NDArray[np.int16],
    names: Mapping[int, str],
    actions: deque[Any],
) -> Replay:
    """Play the first deal of a game on its own.

    players: [seats], player ids of the pool.
    actions: of policies; the rest follows from the seed.
    """
    plain = rules.changed({"skip_forced": 0})
    state = State(plain, settings.seed, plain.weights(None), game=game)
    played: list[Any] = []
    for action in find_opening(plain, game, settings):
        played.append(action)
        state.apply(action)
    first = True
    while not state.over:
        acting = [row for row in range(rules.rows) if state.native.seat(row) >= 0]
        forced = rules.skip_forced and not rules.box and not first
        forced = forced and all(len(state.legal(row)) == 1 for row in acting)
        by_policy = any(players[state.native.seat(row)] >= 0 for row in acting)
        recorded = actions.popleft() if by_policy and not forced else None
        rows: list[Any] = [np.zeros(rules.box) if rules.box else 0] * rules.rows
        for row in acting:
            player = int(players[state.native.seat(row)])
            if forced:
                rows[row] = state.legal(row)[0]
            elif player >= 0 and recorded is not None:
                rows[row] = recorded[row]
            else:
                rows[row] = state.ask(player_name(rules, player), row)
        played.append(np.stack(rows))
        state.apply(played[-1])
        first = False
    seats = [names[int(p)] if p >= 0 else player_name(rules, int(p)) for p in players]
    return Replay.of(state, played, seats)


def find_opening(rules: Rules, game: int, settings: MatchSettings) -> list[int]:
    """Return the random opening actions of a game, found from the positions they lead to."""
    actions: list[int] = []
    plies = range(settings.opening_plies + 1)
    positions = [play_opening(rules, game, settings, count) for count in plies]
    for before, after in pairwise(positions):
        fitting = [action for action in before.legal() if leads_to(before, action, after)]
        if rules.rows > 1 or not fitting:
            raise SparringError(f"no action of {rules.name} leads from one opening to the next")
        actions.append(fitting[0])
    return actions


def play_opening(rules: Rules, game: int, settings: MatchSettings, plies: int) -> State:
    """Return the first position of a game after this many random actions."""
    pool = Pool(
        rules,
        1,
        seed=settings.seed,
        first_game=game,
        threads=1,
        observe=False,
        every_game=True,
        opening_plies=plies,
    )
    pool.reset()
    return pool.state_of(0)


def leads_to(before: State, action: int, after: State) -> bool:
    state = before.clone()
    state.apply(action)
    return same_position(state, after)
