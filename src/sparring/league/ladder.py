"""Ratings of a run's league: from what its learner won and lost on its way, anchored to bots.

What a learner played between two snapshots counts as played by the later one, which it was about to
become. Games of tables count by pairs, of which Plackett and Luce's model makes Elo.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from sparring.league.ratings import Rating, Score, rate, usual_anchors
from sparring.league.results import Record
from sparring.store.archive_index import MATCH, SELF, TRAINING, ArchiveIndex, Entry, Result

MOST_GAMES = 400
"""That a pairing of training counts for: the learner changed meanwhile, so they are no match."""


def rate_league(index: ArchiveIndex, bots: Sequence[str], *, seed: int = 0) -> list[Rating]:
    """Return the ratings of snapshots (by hash), bots and the learner itself, the best first.

    bots: the game's, the weakest first: the first that was met has 0.
    """
    entries = index.entries(removed=True)
    known = {entry.hash for entry in entries} | set(bots)
    scores: dict[tuple[str, str], list[int]] = {}
    for kind in (TRAINING, MATCH):
        for found in index.results(kind):
            mine = played_by(found, entries)
            if found.opponent in known and found.opponent != mine:
                counts = bounded(found.tally) if kind == TRAINING else list(found.tally)
                before = scores.get((mine, found.opponent), [0, 0, 0])
                summed = [a + b for a, b in zip(before, counts, strict=True)]
                scores[mine, found.opponent] = summed
    matches = [Score(one, two, *counts) for (one, two), counts in scores.items() if sum(counts)]
    names = list(dict.fromkeys(name for match in matches for name in (match.one, match.two)))
    if not names:
        return []
    return rate(names, matches, anchors=usual_anchors(names, bots), seed=seed)


def played_by(found: Result, entries: Sequence[Entry]) -> str:
    """Return the snapshot that the learner was about to become, or the learner itself."""
    mine = [entry for entry in entries if entry.member == found.member]
    at = bisect_left([entry.update for entry in mine], found.update)
    return mine[at].hash if at < len(mine) else SELF


def bounded(tally: Sequence[int]) -> list[int]:
    """The same shares of no more games than MOST_GAMES."""
    scale = min(1.0, MOST_GAMES / max(sum(tally), 1))
    return [round(count * scale) for count in tally]


def pairs_of(record: Record) -> list[int]:
    """Return how often the first player of a match was ahead, level and behind, of all others."""
    score = np.take_along_axis(record.score, record.seat_of, axis=1)
    ahead = np.sign(score[:, :1] - score[:, 1:])
    return [int((ahead == sign).sum()) for sign in (1, 0, -1)]
