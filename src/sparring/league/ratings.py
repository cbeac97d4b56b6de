"""Ratings of players from their games: one anchored Elo scale with 95 % intervals.

Two seats are rated by Elo (`elo.py`), more by the Plackett-Luce model (`plackett_luce.py`), of
which Elo is the case of two. An anchor has a fixed rating, so that the ratings of a growing league
do not drift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparring.errors import ConfigError, suggestion
from sparring.league.elo import EloFit, PairScore, sum_by_pair
from sparring.league.plackett_luce import Rankings, RankingsFit
from sparring.league.results import MatchResult

__all__ = ["PairScore", "Rankings", "Rating", "default_anchors", "rankings_of", "rate", "score_of"]

REFERENCE = "random"
"""The bot that has the rating 0 by default: every game has it, and it never changes."""
DEAL_SHARES = 5
"""A deal of two games gives 0, 1/2, 1, 1 1/2 or 2 points."""


@dataclass(frozen=True)
class Rating:
    """A player's Elo rating with its 95 % interval, games and score."""

    player: str
    elo: float
    low: float
    high: float
    games: int
    score: float | None
    """Share of the points; None without games."""
    group: int = 0
    """Players of different groups cannot be compared: no games connect them."""
    anchor: bool = False
    """Its rating is fixed; the others are relative to it."""


def rate(
    names: Sequence[str],
    matches: Sequence[PairScore] | Sequence[Rankings],
    *,
    anchors: Mapping[str, float] | None = None,
    seats: int = 2,
    seed: int = 0,
) -> list[Rating]:
    """Return the ratings of all players, best first.

    matches: for two seats, games won, drawn and lost (`PairScore`); for more, the places of every
        game (`Rankings`). Matches of a player against itself are ignored.
    anchors: fixed ratings. Default: 0 for `random`, else for the first of the names. Players that
        no games connect with an anchor form a group with its own zero.
    seats: of the game.
    seed: of the bootstrap for the intervals.
    """
    anchors = default_anchors(names) if anchors is None else anchors
    check_names(names, anchors, matches)
    scores = [match for match in matches if isinstance(match, PairScore)]
    rankings = [match for match in matches if isinstance(match, Rankings)]
    if scores and rankings:
        raise ConfigError("matches mix PairScore and Rankings; rate them separately")
    wrong = [len(ranking.players) for ranking in rankings if len(ranking.players) != seats]
    if wrong:
        raise ConfigError(f"seats={seats}, but a match has {wrong[0]} players; give seats=")
    counted: Sequence[PairScore | Rankings] = [
        ranking for ranking in rankings if len(ranking.names) > 1
    ]
    if not rankings:
        counted = sum_by_pair([score for score in scores if score.one != score.two])
    ratings: list[Rating] = []
    for number, group in enumerate(connected_groups(names, counted)):
        matches_of_group = [match for match in counted if match.games and match.players[0] in group]
        rated = rate_group(group, matches_of_group, anchors, number, seed)
        ratings += sorted(rated, key=lambda rating: -rating.elo)
    return ratings


def rate_group(
    names: Sequence[str],
    matches: Sequence[Any],
    anchors: Mapping[str, float],
    group: int,
    seed: int,
) -> list[Rating]:
    """Return the ratings of players that games connect; without an anchor the first has 0."""
    fixed = {i: float(anchors[name]) for i, name in enumerate(names) if name in anchors}
    fixed = fixed or {0: 0.0}
    if not matches:
        elo = fixed[0]
        return [Rating(name, elo, elo, elo, 0, None, group, anchor=True) for name in names]
    fit = (EloFit if isinstance(matches[0], PairScore) else RankingsFit)(names, matches, fixed)
    elos, samples = fit.maximum_likelihood(), fit.bootstrap(np.random.default_rng(seed))
    low, high = np.percentile(samples, [2.5, 97.5], axis=0)
    ratings = []
    for i, name in enumerate(names):
        played = [match for match in matches if name in match.players]
        points, possible = np.sum([match.points_of(name) for match in played], axis=0)
        games = sum(match.games for match in played)
        interval = float(elos[i]), float(low[i]), float(high[i])
        ratings.append(Rating(name, *interval, games, float(points / possible), group, i in fixed))
    return ratings


def connected_groups(
    names: Sequence[str], matches: Sequence[PairScore | Rankings]
) -> list[list[str]]:
    """Return the connected components of the graph of games, in the order of the names."""
    group = {name: {name} for name in names}
    for match in matches:
        if match.games:
            joined = set[str]().union(*(group[name] for name in match.players))
            group |= dict.fromkeys(joined, joined)
    groups: list[list[str]] = []
    for name in names:
        if not any(name in other for other in groups):
            groups.append([other for other in names if other in group[name]])
    return groups


def check_names(
    names: Sequence[str], anchors: Mapping[str, float], matches: Sequence[PairScore | Rankings]
) -> None:
    """Reject duplicate players and unknown names."""
    twice = [name for name in dict.fromkeys(names) if list(names).count(name) > 1]
    if twice:
        raise ConfigError(f"{twice[0]} is given twice; give each player once")
    for name, rating in anchors.items():
        if name not in names:
            raise ConfigError(f"the anchor {name!r} does not play{suggestion(name, names)}")
        if not np.isfinite(rating):
            raise ConfigError(f"the anchor {name!r} has the rating {rating}; give a finite number")
    for match in matches:
        unknown = [name for name in match.players if name not in names]
        if unknown:
            raise ConfigError(f"{unknown[0]!r} played but is not among the names to be rated")


def default_anchors(names: Sequence[str], bots: Sequence[str] = ()) -> dict[str, float]:
    """Return the default anchor, with rating 0: `random`, else the weakest bot, else the first.

    bots: of the game, weakest first.
    """
    candidates = [REFERENCE, *bots, *names]
    return {next(name for name in candidates if name in names): 0.0} if names else {}


def score_of(result: MatchResult) -> PairScore:
    """Return the score of a match of two seats, by deals: each was played from both seats."""
    record = result.record
    score = np.take_along_axis(record.score, record.seat_of, axis=1)
    points = (np.sign(score[:, 0] - score[:, 1]) + 1) / 2
    by_deal = np.bincount(record.deal, points)
    counts = np.bincount(np.rint(2 * by_deal).astype(np.intp), minlength=DEAL_SHARES)
    deals = counts * (result.distinct_deals / result.deals)
    wins, draws = int((points == 1).sum()), int((points == 0.5).sum())
    one, two = (player.name for player in result.players)
    losses = len(points) - wins - draws
    return PairScore(one, two, wins, draws, losses, deals=tuple(deals.tolist()))


def rankings_of(result: MatchResult) -> Rankings:
    """Return the rankings of a match, for the Plackett-Luce model."""
    record = result.record
    score = np.take_along_axis(record.score, record.seat_of, axis=1)
    places = (score[:, None, :] > score[:, :, None]).sum(axis=2)
    names = tuple(player.name for player in result.players)
    return Rankings(names, places, record.deal, result.distinct_deals / result.deals)
