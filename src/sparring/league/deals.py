"""Plays the games of a match: every deal once per rotation of the seats, all of them at once.

A deal is what the key (seed, game, episode) decides: the cards, the opening, the lots of the bots.
Each rotation has a pool of its own with the same seed, in which everybody sits one seat further
on; so its tables deal what the tables of the same number deal in the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.games.rules import Rules
from sparring.league.match_batch import DealScores, MatchBatch, MatchSettings, ReplayRecorder
from sparring.league.players import BatchPlayer, make_rng, name_of
from sparring.league.results import MatchRecord
from sparring.nets.stateful_player import max_memory_bytes, rows_read_by
from sparring.pools.lineups import Lineup, PlayerId, player_id
from sparring.pools.native import Pool

SEATING_STREAM = 0x107
"""Keeps the lots of copies and orders apart from everything else that a seed decides."""

Progress = Callable[[int], None]


def play_deals(
    rules: Rules,
    players: Sequence[PlayerId],
    policies: dict[int, BatchPlayer],
    plan: MatchSettings,
    *,
    progress: Progress | None = None,
    keep: ReplayRecorder | None = None,
) -> MatchRecord:
    """Play until every table of every rotation has finished its share of the deals.

    The share is fixed beforehand: taking the first games that finish would favor short ones.
    keep: notes games that are to be kept.
    """
    seats, deals = rules.seats, plan.deals
    count = min(deals, max(1, plan.parallel // seats))
    share = np.full(count, deals // count)
    share[: deals % count] += 1
    last_line = np.cumsum(share)
    orders = seating_orders([player_id(rules, player) for player in players], plan.seed)
    known = {player_id(rules, player): player for player in players}
    rotations = [
        MatchBatch(
            Pool(
                rules,
                count,
                seed=plan.seed,
                threads=plan.threads,
                lineups=[rotated_lineup([known[number] for number in o], ahead) for o in orders],
                observe=bool(policies),
                memory=max_memory_bytes(list(policies.values())),
                every_game=True,
                opening_plies=plan.opening_plies,
            ),
            share,
            players[0],
        )
        for ahead in range(seats)
    ]
    sheets = [DealScores(share, seats) for _ in rotations]
    going = list(zip(rotations, sheets, strict=True))
    step = played = 0
    while going:
        before = played
        actions = choose_actions(
            [tables for tables, _ in going], policies, greedy=plan.greedy, step=step
        )
        for (tables, sheet), action in zip(going, actions, strict=True):
            if keep is not None:
                keep.note(rotations.index(tables), tables, action)
            tables.batch = tables.pool.step(action)
            played += sheet.take(tables, last_line)
        step += 1
        if played > before:
            going = [(tables, sheet) for tables, sheet in going if tables.left.any()]
            if progress is not None:
                progress(played)
    if keep is not None:
        names = {number: name_of(policy) for number, policy in policies.items()}
        keep.finish(rules, names, sheets, plan)
    record = join_rotations(rules, players, sheets, plan.seed)
    return replace(record, counts=np.stack([tables.pool.counts() for tables in rotations]))


def choose_actions(
    tables: Sequence[MatchBatch], policies: dict[int, BatchPlayer], *, greedy: bool, step: int
) -> list[npt.NDArray[Any]]:
    """Answer the rows of all rotations: one batched forward per policy."""
    actions = [each.idle_actions() for each in tables]
    for number, policy in policies.items():
        rows = [each.rows_of(number) for each in tables]
        if not sum(map(len, rows)):
            continue
        asked = list(zip(tables, rows, strict=True))
        answers, memory = policy.decide(
            np.concatenate([rows_read_by(policy, each.batch.obs[mine]) for each, mine in asked]),
            np.concatenate([each.batch.mask[mine] for each, mine in asked]),
            greedy=greedy,
            seed=tables[0].pool.seed,
            rollout=number,
            step=step,
        )
        ends = np.cumsum([len(mine) for mine in rows])[:-1]
        parts = zip(np.split(answers, ends), np.split(memory, ends), strict=True)
        for (each, mine), action, (answer, held) in zip(asked, actions, parts, strict=True):
            action[mine] = answer
            each.remember(mine, held)
    return actions


def rotated_lineup(players: Sequence[PlayerId], ahead: int) -> Lineup:
    cut = len(players) - ahead
    return Lineup((*players[cut:], *players[:cut]), shuffle=False)


def seating_orders(ids: Sequence[int], seed: int) -> list[tuple[int, ...]]:
    """Return in which orders the players may sit around the table, the first one first.

    A deal draws one of them, and all its rotations have the same: who sits next to whom is left
    to lots as well. Where there are too many, lots say which are played.
    """
    first, others = ids[0], sorted(ids[1:])
    copies = math.prod(math.factorial(count) for count in Counter(others).values())
    if math.factorial(len(others)) // copies <= _native.MAX_LINEUPS:
        return [(first, *order) for order in permutations(others)]
    lots = make_rng(seed, SEATING_STREAM)
    return [(first, *map(int, lots.permutation(others))) for _ in range(_native.MAX_LINEUPS)]


def permutations(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the orders of items that differ."""
    if not items:
        yield ()
    for item in sorted(set(items)):
        rest = list(items)
        rest.remove(item)
        for order in permutations(rest):
            yield (item, *order)


def join_rotations(
    rules: Rules, players: Sequence[PlayerId], sheets: Sequence[DealScores], seed: int
) -> MatchRecord:
    """Return all rotations' games as one record, rotation after rotation."""
    seats, deals = rules.seats, len(sheets[0].score)
    ids = np.array([player_id(rules, player) for player in players])
    # Moved back, so that the first player is in seat 0 and copies draw the same lots every time.
    places = [
        seat_players(ids, np.roll(s.player, -ahead, 1), seed) for ahead, s in enumerate(sheets)
    ]
    return MatchRecord(
        seat_of=np.concatenate([(place + ahead) % seats for ahead, place in enumerate(places)]),
        score=np.concatenate([sheet.score for sheet in sheets]),
        length=np.concatenate([sheet.length for sheet in sheets]),
        end=np.concatenate([sheet.end for sheet in sheets]),
        deal=np.tile(np.arange(deals), seats),
        moves=np.concatenate([sheet.moves for sheet in sheets]),
    )


def seat_players(
    ids: npt.NDArray[Any], player: npt.NDArray[np.int16], seed: int
) -> npt.NDArray[np.intp]:
    """Return where everybody sits in a deal before anybody moves on [deals, players].

    player: [deals, seats], who sits there as the pool numbers it; the first player is in seat 0.
    The pool cannot tell copies of one bot or policy apart, so lots decide which copy sits where.
    """
    lots = make_rng(seed, SEATING_STREAM).random(player.shape)
    lots[:, 0] = -1.0
    by_player = np.lexsort((lots, player), axis=1)
    seat_of = np.empty_like(by_player)
    seat_of[:, np.argsort(ids, kind="stable")] = by_player
    return seat_of
