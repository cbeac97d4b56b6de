"""Ratings of a run's league from the learner's results, anchored to bots, and its JSON description.

The learner's last results before a snapshot count as results of that snapshot. Games of more than
two seats count as pairs, of which the Plackett-Luce model makes Elo. Does not import torch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparring.draw.charts.league import Payoff
from sparring.league.intervals import wilson
from sparring.league.ratings import PairScore, Rating, default_anchors, rate
from sparring.league.results import MatchRecord
from sparring.league.roles import FIXED
from sparring.store.archive_index import (
    LEARNER_NAME,
    MATCH,
    TRAINING,
    ArchiveIndex,
    RatingRow,
    Result,
    SnapshotEntry,
)
from sparring.store.standings import LeagueStandings, Player, SnapshotMatch

MAX_RATED = 64
"""Rated snapshots of a long run, spread over it: the time of intervals grows with the cube."""
MAX_BOTS = 4
"""In the matrix."""
MAX_GAMES = 400
"""A pairing of training counts for at most this many games, since the learner kept changing."""


def rate_league(index: ArchiveIndex, bots: Sequence[str], *, seed: int = 0) -> list[Rating]:
    """Return the ratings of snapshots (by hash), bots and the learner itself, best first.

    bots: of the game, weakest first; the first that was met has the rating 0.
    """
    entries = spread_entries(sorted(index.entries(removed=True), key=lambda entry: entry.update))
    players = {entry.hash for entry in entries} | set(bots)
    scores: dict[tuple[str, str], list[int]] = {}
    for kind in (TRAINING, MATCH):
        for (snapshot, *_), result in latest_results(index.results(kind), entries).items():
            if result.opponent in players and result.opponent != snapshot:
                counts = scale_down(result.tally) if kind == TRAINING else list(result.tally)
                before = scores.get((snapshot, result.opponent), [0, 0, 0])
                summed = [a + b for a, b in zip(before, counts, strict=True)]
                scores[snapshot, result.opponent] = summed
    matches = [PairScore(one, two, *counts) for (one, two), counts in scores.items() if sum(counts)]
    names = list(dict.fromkeys(name for match in matches for name in (match.one, match.two)))
    if not names:
        return []
    return rate(names, matches, anchors=default_anchors(names, bots), seed=seed)


def spread_entries(entries: Sequence[SnapshotEntry]) -> list[SnapshotEntry]:
    """Return at most MAX_RATED entries, including the first and the last."""
    if len(entries) <= MAX_RATED:
        return list(entries)
    picked = np.linspace(0, len(entries) - 1, MAX_RATED).round().astype(int)
    return [entries[i] for i in picked]


def latest_results(
    results: Sequence[Result], entries: Sequence[SnapshotEntry]
) -> dict[tuple[str, str, str], Result]:
    """Return the last result of every pairing, by (snapshot, member, opponent).

    Earlier results are of a learner that is less like the snapshot it became.
    """
    in_order = sorted(results, key=lambda result: result.update)
    return {(snapshot_after(r, entries), r.member, r.opponent): r for r in in_order}


def snapshot_after(result: Result, entries: Sequence[SnapshotEntry]) -> str:
    """Return the next snapshot of the learner after a result, or LEARNER_NAME.

    entries: in the order of their updates.
    """
    own = [entry for entry in entries if entry.member == result.member and entry.role != FIXED]
    index = bisect_left([entry.update for entry in own], result.update)
    return own[index].hash if index < len(own) else LEARNER_NAME


def scale_down(tally: Sequence[int]) -> list[int]:
    scale = min(1.0, MAX_GAMES / max(sum(tally), 1))
    return [round(count * scale) for count in tally]


def count_pairs(record: MatchRecord) -> list[int]:
    """Return how often the first player scored more than, as much as and less than another."""
    score = np.take_along_axis(record.score, record.seat_of, axis=1)
    difference = np.sign(score[:, :1] - score[:, 1:])
    return [int((difference == sign).sum()) for sign in (1, 0, -1)]


def describe_league(
    standings: LeagueStandings, pairs: Sequence[SnapshotMatch] = ()
) -> dict[str, Any]:
    return {
        "players": [describe_player(player) for player in standings.players],
        "ratings": {
            name: [{"update": r.update, "decisions": r.decisions, **interval_of(r)} for r in past]
            for name, past in standings.ratings.items()
        },
        "matches": [
            {
                **{"one": pair.one, "two": pair.two, "games": pair.games},
                **{"win": pair.share, "low": pair.low, "high": pair.high},
            }
            for pair in pairs
        ],
    }


def describe_player(player: Player) -> dict[str, Any]:
    rated = player.rated
    facts = ("hash", "role", "member", "update", "decisions", "removed")
    return {
        "player": player.name,
        **{name: getattr(player, name) for name in facts},
        **interval_of(rated),
        "rated_at_decisions": rated.decisions if rated else None,
        "training": player.training and player.training._asdict(),
        "matches": player.matches and player.matches._asdict(),
    }


def interval_of(rated: RatingRow | None) -> dict[str, float | None]:
    return {name: getattr(rated, name, None) for name in ("rating", "low", "high")}


def make_payoff(
    standings: LeagueStandings, chosen: Sequence[Player], pairs: Sequence[SnapshotMatch] = ()
) -> Payoff:
    """Return the payoff matrix: the learner against all, and snapshots where they have matches."""
    bots = [p for p in standings.players if p.role == "bot" and (p.training or p.matches)]
    others = [*chosen, *bots[:MAX_BOTS]]
    names = (LEARNER_NAME, *(player.name for player in others))
    share, low, high = (np.full((len(names), len(names)), np.nan) for _ in range(3))

    def put(one: int, two: int, value: float, ends: tuple[float, float]) -> None:
        share[one, two], share[two, one] = value, 1 - value
        low[one, two], high[one, two] = ends
        low[two, one], high[two, one] = 1 - ends[1], 1 - ends[0]

    for i, player in enumerate(others, 1):
        tally = player.matches or player.training
        if tally and tally.share is not None:
            put(0, i, tally.share, wilson(tally.share, tally.games))
    for pair in pairs:
        put(names.index(pair.one), names.index(pair.two), pair.share, (pair.low, pair.high))
    return Payoff(names, share, low, high)
