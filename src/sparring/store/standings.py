"""Standings of a run's league: players with ratings and results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sparring.errors import ConfigError
from sparring.store.archive_index import (
    LEARNER_NAME,
    MATCH,
    ArchiveIndex,
    RatingRow,
    SnapshotEntry,
    Tally,
)


@dataclass(frozen=True)
class Player:
    """A snapshot, a bot, or the learner itself."""

    name: str
    """Name within the run: past/12, a bot, or self."""
    hash: str | None = None
    number: int | None = None
    role: str = "bot"
    member: str = ""
    update: int | None = None
    decisions: int | None = None
    removed: bool = False
    rated: RatingRow | None = None
    training: Tally | None = None
    """Results of the learner against it in training games."""
    matches: Tally | None = None
    """Results of the learner against it in matches."""


class SnapshotMatch(NamedTuple):
    """Match of two snapshots: win share of the first with its interval."""

    one: str
    two: str
    games: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class LeagueStandings:
    """All players of a league."""

    run: str
    players: tuple[Player, ...]
    """Best first, then unrated players, newest first."""
    ratings: Mapping[str, Sequence[RatingRow]]
    """Ratings over time by name."""


def standings_of(run: Path) -> LeagueStandings:
    """Read the league of a run, also while it trains."""
    index = ArchiveIndex(run)
    entries = {entry.hash: entry for entry in index.entries(removed=True)}
    training, matches = index.totals(), index.totals(MATCH)
    ratings: dict[str, list[RatingRow]] = {}
    for rated in index.ratings():
        ratings.setdefault(rated.player, []).append(rated)
    keys = list(dict.fromkeys([*entries, *training, *matches, *ratings]))
    if not keys:
        raise ConfigError(f"{run} has no league; train one: sparring train GAME --opponents past")
    players = [
        player_of(key, entries.get(key), ratings.get(key), training.get(key), matches.get(key))
        for key in keys
    ]
    names = {key: player.name for key, player in zip(keys, players, strict=True)}
    players.sort(key=rank_key)
    return LeagueStandings(
        run.absolute().name,
        tuple(players),
        {names[key]: tuple(past) for key, past in ratings.items()},
    )


def player_of(
    key: str,
    entry: SnapshotEntry | None,
    past: Sequence[RatingRow] | None,
    training: Tally | None,
    matches: Tally | None,
) -> Player:
    rated = past[-1] if past else None
    if entry is None:
        role = LEARNER_NAME if key == LEARNER_NAME else "bot"
        return Player(key, role=role, rated=rated, training=training, matches=matches)
    return Player(
        f"past/{entry.number}",
        entry.hash,
        entry.number,
        entry.role,
        entry.member,
        entry.update,
        entry.decisions,
        entry.removed,
        rated,
        training,
        matches,
    )


def rank_key(player: Player) -> tuple[float, int]:
    """Sort key: best first, then unrated players, newest first."""
    rating = -player.rated.rating if player.rated else math.inf
    return rating, -(player.number if player.number is not None else -1)


def spread_snapshots(standings: LeagueStandings, limit: int) -> list[Player]:
    """Return existing snapshots spread evenly over the run, with the first and the last."""
    snapshots = [p for p in standings.players if p.number is not None and not p.removed]
    snapshots.sort(key=lambda player: player.number or 0)
    if len(snapshots) <= limit:
        return snapshots
    return [snapshots[round(at * (len(snapshots) - 1) / (limit - 1))] for at in range(limit)]
