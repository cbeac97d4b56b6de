"""Plays the games of a match: every deal once per rotation of the seats, all games at once.

A deal is everything that the key (seed, game, episode) decides: cards, opening, random numbers of
bots. Each rotation has its own pool with the same seed, in which all players sit one seat further
on; so a game deals the same cards in every rotation.
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
"""Random stream of seating orders and of copies of one player."""

Progress = Callable[[int], None]


def play_deals(
    rules: Rules,
    players: Sequence[PlayerId],
    policies: dict[int, BatchPlayer],
    settings: MatchSettings,
    *,
    progress: Progress | None = None,
    recorder: ReplayRecorder | None = None,
) -> MatchRecord:
    """Play until every game of every rotation has finished its quota of deals.

    The quota is fixed in advance: taking the games that finish first would favor short ones.
    """
    seats, deals = rules.seats, settings.deals
    count = min(deals, max(1, settings.parallel // seats))
    quota = np.full(count, deals // count)
    quota[: deals % count] += 1
    line_ends = np.cumsum(quota)
    orders = seating_orders([player_id(rules, player) for player in players], settings.seed)
    by_id = {player_id(rules, player): player for player in players}
    rotations = [
        MatchBatch(
            Pool(
                rules,
                count,
                seed=settings.seed,
                threads=settings.threads,
                lineups=[rotated_lineup([by_id[i] for i in order], by) for order in orders],
                observe=bool(policies),
                memory=max_memory_bytes(list(policies.values())),
                every_game=True,
                opening_plies=settings.opening_plies,
            ),
            quota,
            players[0],
        )
        for by in range(seats)
    ]
    scores = [DealScores(quota, seats) for _ in rotations]
    running = list(zip(rotations, scores, strict=True))
    step = played = 0
    while running:
        before = played
        actions = choose_actions(
            [games for games, _ in running], policies, greedy=settings.greedy, step=step
        )
        for (games, score), action in zip(running, actions, strict=True):
            if recorder is not None:
                recorder.record(rotations.index(games), games, action)
            games.batch = games.pool.step(action)
            played += score.add_finished(games, line_ends)
        step += 1
        if played > before:
            running = [(games, score) for games, score in running if games.remaining.any()]
            if progress is not None:
                progress(played)
    if recorder is not None:
        names = {number: name_of(policy) for number, policy in policies.items()}
        recorder.make_replays(rules, names, scores, settings)
    record = join_rotations(rules, players, scores, settings.seed)
    return replace(record, counts=np.stack([games.pool.counts() for games in rotations]))


def choose_actions(
    rotations: Sequence[MatchBatch], policies: dict[int, BatchPlayer], *, greedy: bool, step: int
) -> list[npt.NDArray[Any]]:
    """Return the actions of all rotations: one batched forward pass or search per policy."""
    actions = [games.default_actions() for games in rotations]
    for number, policy in policies.items():
        rows = [games.rows_of(number) for games in rotations]
        if not sum(map(len, rows)):
            continue
        inputs = list(zip(rotations, rows, strict=True))
        chosen, memory = policy.decide(
            np.concatenate([rows_read_by(policy, games.batch.obs[mine]) for games, mine in inputs]),
            np.concatenate([games.batch.mask[mine] for games, mine in inputs]),
            greedy=greedy,
            seed=rotations[0].pool.seed,
            rollout=number,
            step=step,
            roots=[(games.pool, mine) for games, mine in inputs],
        )
        ends = np.cumsum([len(mine) for mine in rows])[:-1]
        parts = zip(np.split(chosen, ends), np.split(memory, ends), strict=True)
        for (games, mine), action, (values, state) in zip(inputs, actions, parts, strict=True):
            action[mine] = values
            games.store_memory(mine, state)
    return actions


def rotated_lineup(players: Sequence[PlayerId], by: int) -> Lineup:
    cut = len(players) - by
    return Lineup((*players[cut:], *players[:cut]), shuffle=False)


def seating_orders(ids: Sequence[int], seed: int) -> list[tuple[int, ...]]:
    """Return the orders in which players may sit around the table; the first stays first.

    Each deal draws one order for all its rotations, so that neighbors are random as well. If there
    are more orders than line-ups a pool can hold, a random sample of them is used.
    """
    first, others = ids[0], sorted(ids[1:])
    copies = math.prod(math.factorial(count) for count in Counter(others).values())
    if math.factorial(len(others)) // copies <= _native.MAX_LINEUPS:
        return [(first, *order) for order in permutations(others)]
    rng = make_rng(seed, SEATING_STREAM)
    return [(first, *map(int, rng.permutation(others))) for _ in range(_native.MAX_LINEUPS)]


def permutations(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the distinct orders of items."""
    if not items:
        yield ()
    for item in sorted(set(items)):
        rest = list(items)
        rest.remove(item)
        for order in permutations(rest):
            yield (item, *order)


def join_rotations(
    rules: Rules, players: Sequence[PlayerId], scores: Sequence[DealScores], seed: int
) -> MatchRecord:
    """Return the games of all rotations as one record, rotation after rotation."""
    seats, deals = rules.seats, len(scores[0].score)
    ids = np.array([player_id(rules, player) for player in players])
    # Rolled back, so that the first player is in seat 0 and copies get the same random numbers.
    seatings = [seat_players(ids, np.roll(s.player, -by, 1), seed) for by, s in enumerate(scores)]
    return MatchRecord(
        seat_of=np.concatenate([(seating + by) % seats for by, seating in enumerate(seatings)]),
        score=np.concatenate([score.score for score in scores]),
        length=np.concatenate([score.length for score in scores]),
        end=np.concatenate([score.end for score in scores]),
        deal=np.tile(np.arange(deals), seats),
        action_hash=np.concatenate([score.action_hash for score in scores]),
    )


def seat_players(
    ids: npt.NDArray[Any], player: npt.NDArray[np.int16], seed: int
) -> npt.NDArray[np.intp]:
    """Return the seat of every player in a deal before it is rotated [deals, players].

    player: [deals, seats], player ids of the pool; the first player is in seat 0.
    The pool cannot distinguish copies of one bot or policy, so random numbers assign them to seats.
    """
    order = make_rng(seed, SEATING_STREAM).random(player.shape)
    order[:, 0] = -1.0
    by_player = np.lexsort((order, player), axis=1)
    seat_of = np.empty_like(by_player)
    seat_of[:, np.argsort(ids, kind="stable")] = by_player
    return seat_of
