"""What a run's archive says about everybody in its league, put together for people."""

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
    """Within the run: past/12, a bot's name, or self."""
    hash: str | None = None
    number: int | None = None
    role: str = "bot"
    member: str = ""
    update: int | None = None
    decisions: int | None = None
    removed: bool = False
    rated: RatingRow | None = None
    training: Tally | None = None
    """How the learner did against it in games that it was trained on."""
    matches: Tally | None = None
    """And in matches beside them."""


class SnapshotMatch(NamedTuple):
    """A match of two snapshots: the first one's share of the wins, with its interval."""

    one: str
    two: str
    games: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class LeagueStandings:
    """A league at a glance."""

    run: str
    players: tuple[Player, ...]
    """The best first, then those without a rating, the newest first."""
    ratings: Mapping[str, Sequence[RatingRow]]
    """Over time, by name."""


def standings_of(run: Path) -> LeagueStandings:
    """Read the league of a run, also while it trains."""
    index = ArchiveIndex(run)
    entries = {entry.hash: entry for entry in index.entries(removed=True)}
    training, matches = index.totals(), index.totals(MATCH)
    ratings: dict[str, list[RatingRow]] = {}
    for rated in index.ratings():
        ratings.setdefault(rated.player, []).append(rated)
    known = list(dict.fromkeys([*entries, *training, *matches, *ratings]))
    if not known:
        raise ConfigError(f"{run} has no league; train one: sparring train GAME --opponents past")
    players = [
        player_of(key, entries.get(key), ratings.get(key), training.get(key), matches.get(key))
        for key in known
    ]
    named = {key: player.name for key, player in zip(known, players, strict=True)}
    players.sort(key=rank_key)
    return LeagueStandings(
        run.absolute().name,
        tuple(players),
        {named[key]: tuple(past) for key, past in ratings.items()},
    )


def player_of(
    key: str,
    entry: SnapshotEntry | None,
    past: Sequence[RatingRow] | None,
    training: Tally | None,
    matches: Tally | None,
) -> Player:
    """Put together what is known about one of them."""
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
    """Order players: the best first, those without a rating behind them, the newest first."""
    worth = -player.rated.rating if player.rated else math.inf
    return worth, -(player.number if player.number is not None else -1)


def spread_snapshots(standings: LeagueStandings, most: int) -> list[Player]:
    """Return snapshots that are there, spread over the run, the first and the last among them."""
    there = [p for p in standings.players if p.number is not None and not p.removed]
    there.sort(key=lambda player: player.number or 0)
    if len(there) <= most:
        return there
    return [there[round(at * (len(there) - 1) / (most - 1))] for at in range(most)]
