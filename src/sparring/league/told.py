"""A league as plain values: who is known, what they are worth, who beats whom. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparring.draw.charts.league import Payoff
from sparring.league.intervals import wilson
from sparring.store.archive_index import SELF, Tally
from sparring.store.standings import Pair, Player, Standings

MOST_BOTS = 4
"""Bots in the matrix."""


def described(standings: Standings, pairs: Sequence[Pair] = ()) -> dict[str, Any]:
    """Return everything that is known, as JSON has it."""
    return {
        "players": [described_player(player) for player in standings.players],
        "ratings": {
            name: [
                {"update": r.update, "decisions": r.decisions, **ends(r.rating, r.low, r.high)}
                for r in past
            ]
            for name, past in standings.ratings.items()
        },
        "matches": [
            {"one": p.one, "two": p.two, "games": p.games, "win": p.share, **bounds(p)}
            for p in pairs
        ],
    }


def described_player(player: Player) -> dict[str, Any]:
    """Return what is known about one player."""
    counts: Mapping[str, Any] = {
        "training": player.training and player.training._asdict(),
        "matches": player.matches and player.matches._asdict(),
    }
    rated = player.rated
    return {
        "player": player.name,
        "hash": player.hash,
        "role": player.role,
        "member": player.member,
        "update": player.update,
        "decisions": player.decisions,
        "removed": player.removed,
        **(ends(rated.rating, rated.low, rated.high) if rated else ends(None, None, None)),
        "rated_at_decisions": rated.decisions if rated else None,
        **counts,
    }


def ends(rating: float | None, low: float | None, high: float | None) -> dict[str, float | None]:
    """Return a rating with its interval by name."""
    return {"rating": rating, "low": low, "high": high}


def bounds(pair: Pair) -> dict[str, float]:
    """Return the interval of a match by name."""
    return {"low": pair.low, "high": pair.high}


def payoff_of(standings: Standings, chosen: Sequence[Player], pairs: Sequence[Pair] = ()) -> Payoff:
    """Return a matrix: the learner against everybody, and the matches of snapshots if any."""
    bots = [p for p in standings.players if p.role == "bot" and (p.training or p.matches)]
    others = [*chosen, *bots[:MOST_BOTS]]
    names = (SELF, *(player.name for player in others))
    share, low, high = (np.full((len(names), len(names)), np.nan) for _ in range(3))

    def put(one: int, two: int, value: float, ends: tuple[float, float]) -> None:
        share[one, two], share[two, one] = value, 1 - value
        low[one, two], high[one, two] = ends
        low[two, one], high[two, one] = 1 - ends[1], 1 - ends[0]

    for at, player in enumerate(others, 1):
        tally = player.matches or player.training
        if tally and tally.share is not None:
            put(0, at, tally.share, interval(tally))
    for pair in pairs:
        put(names.index(pair.one), names.index(pair.two), pair.share, (pair.low, pair.high))
    return Payoff(names, share, low, high)


def interval(tally: Tally) -> tuple[float, float]:
    """Return the interval of the learner's points against somebody, as if games were shares."""
    return wilson(tally.share or 0.0, tally.games)
