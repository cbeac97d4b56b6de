"""Matches in an environment of somebody's own: whole episodes, each with a seed of its own.

Which episodes there are is fixed beforehand, so that neither how many are played at once nor which
of them ends first decides what is measured. Every deal, which is a seed, is played from every seat.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.league.players import Seated
from sparring.league.results import Record
from sparring.nets.remembering import Memories
from sparring.pools.foreign.again import check_same, factory_of, made_again, tables_of
from sparring.pools.foreign.base import TERMINATED, TRUNCATED, ForeignPool
from sparring.pools.foreign.tables import Table
from sparring.pools.lineups import NOBODY

OWN_GAMES = 128
"""Episodes of a measurement, unless somebody says otherwise: they may take seconds each."""
AT_ONCE = 8
"""Environments that are played side by side, which spares calls of the network."""
FIRST_SEED, SEEDS = 1_000_000_000, 2**31
"""Seeds of measurements are apart from those of training, which count from the run's own on."""
PATIENCE = 2.0
"""Episodes that are under way when the time is over have as much again to end."""


@dataclass(frozen=True)
class Terms:
    """How a match is played."""

    games: int
    seed: int = 0
    greedy: bool = True
    limit_s: float = float("inf")
    """Seconds after which no more episodes begin."""


@dataclass
class Episode:
    """A game under way, and what it has brought so far."""

    deal: int
    ahead: int
    """By how many seats everybody has moved on."""
    score: npt.NDArray[np.float64]
    length: int = 0
    moves: int = 0
    end: int = TERMINATED
    held: Memories = field(default_factory=dict)
    """What the players remember of it, by seat."""

    def note(self, seen: npt.NDArray[Any], action: npt.NDArray[Any], decided: int) -> None:
        """Add what was seen and played in a step: nobody knows whether seeds change anything."""
        self.length += decided
        for part in (seen, action):
            self.moves = zlib.crc32(np.ascontiguousarray(part).tobytes(), self.moves)


@dataclass
class Results:
    """The episodes that are over, and the clock."""

    terms: Terms
    total: int
    told: Callable[[int], None] | None
    lines: list[Episode] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start the clock."""
        self.started = time.monotonic()

    def add(self, line: Episode) -> None:
        """Write down an episode."""
        self.lines.append(line)
        if self.told:
            self.told(len(self.lines))

    @property
    def may_begin(self) -> bool:
        """Whether there is time for another one."""
        return time.monotonic() - self.started < self.terms.limit_s

    @property
    def may_go_on(self) -> bool:
        """Whether those under way are still waited for."""
        return time.monotonic() - self.started < PATIENCE * self.terms.limit_s


def play_own(
    rules: Rules,
    players: Sequence[Seated],
    terms: Terms,
    told: Callable[[int], None] | None = None,
) -> Record:
    """Play whole episodes; the first of the players is measured.

    players: one per seat, in the order in which they sit; the next rotation has everybody one seat
    further on. told: called with the number of episodes that are over.
    """
    deals = -(-terms.games // rules.seats)
    pool = made_again(factory_of(rules), min(AT_ONCE, deals * rules.seats))
    for player in players:
        check_same(player.name, rules, pool.rules)
    results = Results(terms, deals * rules.seats, told)
    play = by_tables if tables_of(pool) else by_vector
    play(pool, players, results, deals)
    lines = whole_deals(results.lines, rules.seats)
    if len(lines) < 2:
        raise SparringError(
            f"{rules.name}: {len(lines)} of {results.total} episodes ended within "
            f"{PATIENCE * terms.limit_s:g} s; give evaluations more time with eval.limit_s, or end "
            "episodes with a time limit (gymnasium.wrappers.TimeLimit)"
        )
    return record_of(lines, rules.seats)


def seed_of(seed: int, deal: int) -> int:
    """What an environment is seeded with."""
    return (FIRST_SEED + seed + deal) % SEEDS


# Environments one by one


def by_tables(pool: ForeignPool, players: Sequence[Seated], results: Results, deals: int) -> None:
    """Play every episode at whichever table is free next."""
    seats, seed = pool.rules.seats, results.terms.seed
    waiting = (
        Episode(deal, ahead, np.zeros(seats)) for deal in range(deals) for ahead in range(seats)
    )
    free, going = tables_of(pool)[:], list[tuple[Table, Episode]]()
    step = 0
    while results.may_go_on:
        for episode in islice(waiting, len(free)) if results.may_begin else ():
            table = free.pop()
            table.steps = 0
            table.start(seed_of(seed, episode.deal))
            table.check()
            going.append((table, episode))
        if not going:
            return
        answers = answer_tables(pool, players, going, results.terms, step)
        for (table, episode), action in zip(going, answers, strict=True):
            step_table(pool, table, episode, action)
        step += 1
        for table, episode in [each for each in going if each[0].over]:
            episode.held.clear()
            results.add(episode)
            free.append(table)
        going = [each for each in going if not each[0].over]


def step_table(pool: ForeignPool, table: Table, episode: Episode, action: npt.NDArray[Any]) -> None:
    """Play one step of one episode."""
    episode.note(table.numbers, action, sum(seat >= 0 for seat in table.deciding()))
    table.reward.fill(0)
    table.play(pool.rules.env_actions(action))
    table.check()
    episode.score += table.reward
    if table.over and table.truncated.any():
        episode.end = TRUNCATED


def answer_tables(
    pool: ForeignPool,
    players: Sequence[Seated],
    going: Sequence[tuple[Table, Episode]],
    terms: Terms,
    step: int,
) -> list[npt.NDArray[Any]]:
    """Ask whoever is to decide, each player once for all tables; actions [rows] of every table."""
    rules = pool.rules
    shape = (rules.rows, rules.box) if rules.box else (rules.rows,)
    kind = np.float32 if rules.box else np.int64
    actions = [np.zeros(shape, kind) for _ in going]
    asked: dict[int, list[tuple[int, int, int]]] = {}
    for at, (table, episode) in enumerate(going):
        for row, seat in enumerate(table.deciding()):
            if seat >= 0:
                number = (seat - episode.ahead) % rules.seats
                asked.setdefault(number, []).append((at, row, seat))
    for number, places in asked.items():
        player, tables = players[number], [(*going[at], seat) for at, _, seat in places]
        nothing = np.zeros(player.memory_bytes, np.uint8)
        answers, memory = player.decide(
            rules.pack(np.stack([table.numbers[seat] for table, _, seat in tables])),
            np.stack([table.mask[seat] for table, _, seat in tables]),
            np.stack([episode.held.get(seat, nothing) for _, episode, seat in tables]),
            greedy=terms.greedy,
            seed=terms.seed,
            rollout=number,
            step=step,
        )
        for (at, row, seat), action, held in zip(places, answers, memory, strict=True):
            actions[at][row] = action
            going[at][1].held[seat] = held
    return actions


# Vectors, which begin all of their episodes together


def by_vector(pool: ForeignPool, players: Sequence[Seated], results: Results, deals: int) -> None:
    """Play one episode in every sub-env, and again with other seeds until there are enough."""
    terms, games = results.terms, pool.num_games
    for first in range(0, deals, games):
        if not results.may_begin:
            return
        batch, step = pool.reset(seed_of(terms.seed, first)), 0
        memory = np.zeros((games, players[0].memory_bytes), np.uint8)
        going = {
            game: Episode(first + game, 0, np.zeros(1)) for game in range(min(games, deals - first))
        }
        while going and results.may_go_on:
            action = pool.sample_actions()
            mine = np.array([row for row in going if batch.policy[row] != NOBODY], np.intp)
            how: dict[str, Any] = {"greedy": terms.greedy, "seed": terms.seed, "step": step}
            action[mine], memory[mine] = players[0].decide(
                batch.obs[mine], batch.mask[mine], memory[mine], **how
            )
            for row in mine:
                going[int(row)].note(batch.obs[row], action[row], 1)
            batch, step = pool.step(action), step + 1
            for at, game in enumerate(batch.final_game):
                if int(game) in going:
                    episode = going.pop(int(game))
                    episode.score[:] = batch.final_score[at]
                    episode.end = int(batch.final_reason[at])
                    results.add(episode)


# What came of it


def whole_deals(lines: Sequence[Episode], seats: int) -> list[Episode]:
    """Deals that were played from every seat, counted from 0, in order."""
    found: dict[int, list[Episode]] = {}
    for line in sorted(lines, key=lambda line: (line.deal, line.ahead)):
        found.setdefault(line.deal, []).append(line)
    return list(renumbered(each for each in found.values() if len(each) == seats))


def renumbered(deals: Iterator[list[Episode]]) -> Iterator[Episode]:
    """Count deals without gaps."""
    for number, deal in enumerate(deals):
        for line in deal:
            line.deal = number
            yield line


def record_of(lines: Sequence[Episode], seats: int) -> Record:
    """Put episodes together."""
    ahead = np.array([line.ahead for line in lines], np.intp)
    return Record(
        seat_of=(np.arange(seats)[None] + ahead[:, None]) % seats,
        score=np.array([line.score for line in lines], np.float32),
        length=np.array([line.length for line in lines], np.int32),
        end=np.array([line.end for line in lines], np.uint8),
        deal=np.array([line.deal for line in lines], np.intp),
        moves=np.array([line.moves for line in lines], np.uint64),
    )
