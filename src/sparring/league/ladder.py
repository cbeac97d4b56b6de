"""A run's league: ratings, anchored to bots, from what its learner won and lost on its way, and
everything that is known about its players as plain values. Needs no torch.

What a learner played last before a snapshot counts as played by that, which it was about to
become. Games of tables count by pairs, of which Plackett and Luce's model makes Elo.
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
"""Snapshots of a long run that are rated, spread over it: intervals take time with the cube."""
MAX_BOTS = 4
"""Bots in the matrix."""
MAX_GAMES = 400
"""That a pairing of training counts for: the learner changed meanwhile, so they are no match."""


def rate_league(index: ArchiveIndex, bots: Sequence[str], *, seed: int = 0) -> list[Rating]:
    """Return the ratings of snapshots (by hash), bots and the learner itself, the best first.

    bots: the game's, the weakest first: the first that was met has 0.
    """
    entries = spread_entries(sorted(index.entries(removed=True), key=lambda entry: entry.update))
    known = {entry.hash for entry in entries} | set(bots)
    scores: dict[tuple[str, str], list[int]] = {}
    for kind in (TRAINING, MATCH):
        for (mine, *_), found in latest_results(index.results(kind), entries).items():
            if found.opponent in known and found.opponent != mine:
                counts = scale_down(found.tally) if kind == TRAINING else list(found.tally)
                before = scores.get((mine, found.opponent), [0, 0, 0])
                summed = [a + b for a, b in zip(before, counts, strict=True)]
                scores[mine, found.opponent] = summed
    matches = [PairScore(one, two, *counts) for (one, two), counts in scores.items() if sum(counts)]
    names = list(dict.fromkeys(name for match in matches for name in (match.one, match.two)))
    if not names:
        return []
    return rate(names, matches, anchors=default_anchors(names, bots), seed=seed)


def spread_entries(entries: Sequence[SnapshotEntry]) -> list[SnapshotEntry]:
    """Return no more than MAX_RATED entries, the first and the last among them."""
    if len(entries) <= MAX_RATED:
        return list(entries)
    return [entries[at] for at in np.linspace(0, len(entries) - 1, MAX_RATED).round().astype(int)]


def latest_results(
    results: Sequence[Result], entries: Sequence[SnapshotEntry]
) -> dict[tuple[str, str, str], Result]:
    """Return the last result of every pairing, by who played, its run and the opponent.

    What came before was played by a learner further away from the snapshot that it became; one that
    has become none would be rated by its whole life.
    """
    in_order = sorted(results, key=lambda found: found.update)
    return {(snapshot_after(one, entries), one.member, one.opponent): one for one in in_order}


def snapshot_after(found: Result, entries: Sequence[SnapshotEntry]) -> str:
    """Return the snapshot that the learner was about to become, or the learner itself.

    entries: by when they were the learner.
    """
    mine = [entry for entry in entries if entry.member == found.member and entry.role != FIXED]
    at = bisect_left([entry.update for entry in mine], found.update)
    return mine[at].hash if at < len(mine) else LEARNER_NAME


def scale_down(tally: Sequence[int]) -> list[int]:
    scale = min(1.0, MAX_GAMES / max(sum(tally), 1))
    return [round(count * scale) for count in tally]


def count_pairs(record: MatchRecord) -> list[int]:
    """Return how often the first player of a match was ahead, level and behind, of all others."""
    score = np.take_along_axis(record.score, record.seat_of, axis=1)
    ahead = np.sign(score[:, :1] - score[:, 1:])
    return [int((ahead == sign).sum()) for sign in (1, 0, -1)]


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
    """Return a matrix: the learner against everybody, and the matches of snapshots if any."""
    bots = [p for p in standings.players if p.role == "bot" and (p.training or p.matches)]
    others = [*chosen, *bots[:MAX_BOTS]]
    names = (LEARNER_NAME, *(player.name for player in others))
    share, low, high = (np.full((len(names), len(names)), np.nan) for _ in range(3))

    def put(one: int, two: int, value: float, ends: tuple[float, float]) -> None:
        share[one, two], share[two, one] = value, 1 - value
        low[one, two], high[one, two] = ends
        low[two, one], high[two, one] = 1 - ends[1], 1 - ends[0]

    for at, player in enumerate(others, 1):
        tally = player.matches or player.training
        if tally and tally.share is not None:
            put(0, at, tally.share, wilson(tally.share, tally.games))
    for pair in pairs:
        put(names.index(pair.one), names.index(pair.two), pair.share, (pair.low, pair.high))
    return Payoff(names, share, low, high)
