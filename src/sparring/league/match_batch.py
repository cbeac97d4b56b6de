"""The tables of a match: what is played at them, what it brings, and games of it as replays."""

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
    """What is played: how many deals, how many at once, from which seed, how they open."""

    deals: int
    parallel: int
    seed: int
    threads: int
    greedy: bool
    opening_plies: int


class MatchBatch:
    """A pool whose tables each have a share of the deals, and how far they are."""

    def __init__(
        self, pool: Pool, share: npt.NDArray[np.intp], counted: PlayerId = LEARNER
    ) -> None:
        """Begin; `counted` is the player whose seats are counted."""
        self.pool, self.rules = pool, pool.rules
        pool.set_counting(counted)
        self.batch = pool.reset()
        self.share, self.left = share, share.copy()
        """[tables], deals that are still to be finished there."""
        self.some_finished = False
        rows = pool.num_games * self.rules.rows
        box = self.rules.box
        self.nothing = np.zeros((rows, box), np.float32) if box else np.zeros(rows, np.int32)

    def count(self, tables: npt.NDArray[Any]) -> None:
        """Note that a deal was finished at each of these tables."""
        self.left[tables] -= 1
        self.some_finished = not self.left.all()
        self.pool.left_out[tables] = self.left[tables] == 0

    def rows_of(self, policy: int) -> npt.NDArray[np.intp]:
        """Return the rows that a policy has to answer, at tables that still count."""
        mine = self.batch.policy == policy
        if self.some_finished:
            mine &= np.repeat(self.left > 0, self.rules.rows)
        return np.flatnonzero(mine)

    def remember(self, rows: npt.NDArray[np.intp], memory: npt.NDArray[np.uint8]) -> None:
        """Write what was remembered of rows [rows, bytes], to be shown with their seats' next."""
        size = memory.shape[1]
        if size:
            games = rows // self.rules.rows
            self.pool.memory[games, self.batch.seat[rows], :size] = memory

    def idle_actions(self) -> npt.NDArray[Any]:
        """Return actions for rows that nobody answers: any legal ones, the cheapest there are."""
        # Bots take none, so that it matters only where a table has finished its share.
        if self.some_finished and self.pool.policies:
            return self.pool.sample_actions()
        return self.nothing


class DealScores:
    """The sheets of one rotation, a line per deal."""

    def __init__(self, share: npt.NDArray[np.intp], seats: int) -> None:
        """Begin. share: [tables], deals of each."""
        self.share, deals = share, int(share.sum())
        self.score = np.zeros((deals, seats), np.float32)
        self.player = np.zeros((deals, seats), np.int16)
        self.length = np.zeros(deals, np.int32)
        self.end = np.zeros(deals, np.uint8)
        self.moves = np.zeros(deals, np.uint64)

    def take(self, tables: MatchBatch, last_line: npt.NDArray[np.intp]) -> int:
        """Write down the games that just ended and still count; return how many.

        last_line: [tables], behind the last line of each.
        """
        batch = tables.batch
        ended = batch.final_game
        if not len(ended):
            return 0
        counted = tables.left[ended] > 0
        table = ended[counted]
        line = last_line[table] - tables.left[table]
        self.score[line] = batch.final_score[counted]
        self.player[line] = batch.final_policy[counted]
        self.length[line] = batch.final_length[counted]
        self.end[line] = batch.final_reason[counted]
        self.moves[line] = batch.final_moves[counted]
        tables.count(table)
        return len(table)


@dataclass
class ReplayRecorder:
    """Which games of a match are to be kept as replays, and those that were.

    A match plays many games at once, bots and forced moves inside the native step. So what is noted
    while it goes on is what policies answered, which nobody could draw again; everything else
    follows from (seed, game): such a game is played once more on its own, bots asked in their turn
    with the same lots, and is kept only if scores, end and length are those of the match. Only the
    first game at a table can be made again that way; by default that is every game of a match.
    """

    most: int
    """So many at most, the first deals, each from every seat."""
    replays: list[Replay] = field(default_factory=list)
    seats: list[int] = field(default_factory=list)
    """Where the first player of the match sat, by replay."""
    missed: int = 0
    """Games that did not come out when they were played again, as after an opening drawn anew."""
    answers: dict[tuple[int, int], deque[Any]] = field(default_factory=dict)
    """What policies answered, by (rotation, table)."""

    def note(self, ahead: int, tables: MatchBatch, actions: npt.NDArray[Any]) -> None:
        """Note what policies answer at the first tables of a rotation, in their first games."""
        rules = tables.rules
        count = min(self.tables_of(rules), tables.pool.num_games)
        asked = tables.batch.policy[: count * rules.rows].reshape(count, rules.rows) >= 0
        going = tables.left[:count] == tables.share[:count]
        given = actions[: count * rules.rows].reshape(count, rules.rows, *actions.shape[1:])
        for table in np.flatnonzero(asked.any(1) & going):
            self.answers.setdefault((ahead, int(table)), deque()).append(given[table].copy())

    def tables_of(self, rules: Rules) -> int:
        return -(-self.most // rules.seats)

    def finish(
        self,
        rules: Rules,
        names: Mapping[int, str],
        sheets: Sequence[DealScores],
        plan: MatchSettings,
    ) -> None:
        """Play the games again that were noted. names: those of policies, by id."""
        first_lines = np.concatenate([[0], np.cumsum(sheets[0].share)[:-1]])
        count = min(self.tables_of(rules), len(first_lines))
        wanted = [(table, ahead) for table in range(count) for ahead in range(rules.seats)]
        for table, ahead in wanted[: self.most]:
            sheet, line = sheets[ahead], int(first_lines[table])
            answers = self.answers.pop((ahead, table), deque())
            try:
                replay = replay_game(
                    rules, table, plan, players=sheet.player[line], names=names, answers=answers
                )
            except (SparringError, IndexError):
                self.missed += 1
                continue
            reason = rules.ends[sheet.end[line]]
            told = tuple(float(score) for score in sheet.score[line]), reason, sheet.length[line]
            if told != (replay.scores, replay.end, len(replay.actions)):
                self.missed += 1
                continue
            self.replays.append(replay)
            self.seats.append(ahead)


def replay_game(
    rules: Rules,
    table: int,
    plan: MatchSettings,
    *,
    players: npt.NDArray[np.int16],
    names: Mapping[int, str],
    answers: deque[Any],
) -> Replay:
    """Play the first game of a table on its own. players: who sits where, as a pool numbers it."""
    plain = rules.changed({"skip_forced": 0})
    state = State(plain, plan.seed, plain.weights(None), game=table)
    actions: list[Any] = []
    for action in find_opening(plain, table, plan):
        actions.append(action)
        state.apply(action)
    first = True
    while not state.over:
        acting = [row for row in range(rules.rows) if state.native.seat(row) >= 0]
        forced = rules.skip_forced and not rules.box and not first
        forced = forced and all(len(state.legal(row)) == 1 for row in acting)
        asked = any(players[state.native.seat(row)] >= 0 for row in acting)
        answered = answers.popleft() if asked and not forced else None
        rows: list[Any] = [np.zeros(rules.box) if rules.box else 0] * rules.rows
        for row in acting:
            player = int(players[state.native.seat(row)])
            if forced:
                rows[row] = state.legal(row)[0]
            elif player >= 0 and answered is not None:
                rows[row] = answered[row]
            else:
                rows[row] = state.ask(player_name(rules, player), row)
        actions.append(np.stack(rows))
        state.apply(actions[-1])
        first = False
    seated = [names[int(p)] if p >= 0 else player_name(rules, int(p)) for p in players]
    return Replay.of(state, actions, seated)


def find_opening(rules: Rules, table: int, plan: MatchSettings) -> list[int]:
    """Return what lots decided at the start of a game, found from the positions they led to."""
    found: list[int] = []
    positions = [play_opening(rules, table, plan, plies) for plies in range(plan.opening_plies + 1)]
    for was, now in pairwise(positions):
        fitting = [action for action in was.legal() if leads_to(was, action, now)]
        if rules.rows > 1 or not fitting:
            raise SparringError(f"no decision of {rules.name} leads from one opening to the next")
        found.append(fitting[0])
    return found


def play_opening(rules: Rules, table: int, plan: MatchSettings, plies: int) -> State:
    """Return a table's first game after so many decisions by lot."""
    pool = Pool(
        rules,
        1,
        seed=plan.seed,
        first_game=table,
        threads=1,
        observe=False,
        every_game=True,
        opening_plies=plies,
    )
    pool.reset()
    return pool.state_of(0)


def leads_to(was: State, action: int, now: State) -> bool:
    after = was.clone()
    after.apply(action)
    return same_position(after, now)
