"""How strong players are, from whatever they played: one scale, anchored, with 95 % intervals.

Two seats are rated by Elo (`elo.py`), more by Plackett and Luce's model (`plackett_luce.py`), of
which Elo is the case of two. An anchor keeps the rating it was given, so that the ratings of a
league that grows do not drift: a player is as strong as its distance from the anchors.
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
"""The bot that has 0 wherever it plays: the same one in every game, and it never changes."""
DEAL_SHARES = 5
"""A deal of two games brings 0, 1/2, 1, 1 1/2 or 2 points."""


@dataclass(frozen=True)
class Rating:
    """A player's Elo with its 95 % interval, and what it comes from."""

    player: str
    elo: float
    low: float
    high: float
    games: int
    score: float | None
    """Share of the points; None without games."""
    group: int = 0
    """Only players of one group can be compared: no games connect it with the others."""
    anchor: bool = False
    """Its rating was given, not found: the others are measured from it."""


def rate(
    names: Sequence[str],
    matches: Sequence[PairScore] | Sequence[Rankings],
    *,
    anchors: Mapping[str, float] | None = None,
    seats: int = 2,
    seed: int = 0,
) -> list[Rating]:
    """Return everybody's rating, the best first.

    matches: for two seats, games won, drawn and lost (`PairScore`); for more, the places of every
        game (`Rankings`). Matches of a player against itself are ignored.
    anchors: players whose ratings are given. Left out: `random` has 0, or the first of the names.
        Players whom no games connect with an anchor are a group with a zero of its own.
    seats: of the game.
    seed: of the bootstrap, from which the intervals come.
    """
    anchors = default_anchors(names) if anchors is None else anchors
    check_names(names, anchors, matches)
    scores = [match for match in matches if isinstance(match, PairScore)]
    tables = [match for match in matches if isinstance(match, Rankings)]
    if scores and tables:
        raise ConfigError("matches are scores of two and rankings of tables; rate them apart")
    wrong = [len(table.players) for table in tables if len(table.players) != seats]
    if wrong:
        raise ConfigError(f"seats={seats}, but a table has {wrong[0]} players; say seats=")
    met: Sequence[PairScore | Rankings] = [table for table in tables if len(table.names) > 1]
    if not tables:
        met = sum_by_pair([score for score in scores if score.one != score.two])
    found: list[Rating] = []
    for number, group in enumerate(connected_groups(names, met)):
        mine = [match for match in met if match.games and match.players[0] in group]
        rated = rate_group(group, mine, anchors, number, seed)
        found += sorted(rated, key=lambda rating: -rating.elo)
    return found


def rate_group(
    names: Sequence[str],
    matches: Sequence[Any],
    anchors: Mapping[str, float],
    group: int,
    seed: int,
) -> list[Rating]:
    """Return the ratings of players that games connect; without an anchor the first has 0."""
    fixed = {at: float(anchors[name]) for at, name in enumerate(names) if name in anchors}
    fixed = fixed or {0: 0.0}
    if not matches:
        elo = fixed[0]
        return [Rating(name, elo, elo, elo, 0, None, group, anchor=True) for name in names]
    fit = (EloFit if isinstance(matches[0], PairScore) else RankingsFit)(names, matches, fixed)
    elos, again = fit.likeliest(), fit.drawn_again(np.random.default_rng(seed))
    low, high = np.percentile(again, [2.5, 97.5], axis=0)
    ratings = []
    for at, name in enumerate(names):
        mine = [match for match in matches if name in match.players]
        points, of = np.sum([match.points_of(name) for match in mine], axis=0)
        games = sum(match.games for match in mine)
        bounds = float(elos[at]), float(low[at]), float(high[at])
        ratings.append(Rating(name, *bounds, games, float(points / of), group, at in fixed))
    return ratings


def connected_groups(
    names: Sequence[str], matches: Sequence[PairScore | Rankings]
) -> list[list[str]]:
    """Return who can be compared with whom: players that games connect, if only through others.

    Groups come in the order of their first names, and so do the players within.
    """
    group = {name: {name} for name in names}
    for match in matches:
        if match.games:
            joined = set[str]().union(*(group[name] for name in match.players))
            group |= dict.fromkeys(joined, joined)
    found: list[list[str]] = []
    for name in names:
        if not any(name in known for known in found):
            found.append([other for other in names if other in group[name]])
    return found


def check_names(
    names: Sequence[str], anchors: Mapping[str, float], matches: Sequence[PairScore | Rankings]
) -> None:
    """Refuse players twice, and words that are no player's."""
    twice = [name for name in dict.fromkeys(names) if list(names).count(name) > 1]
    if twice:
        raise ConfigError(f"{twice[0]} is there twice; give each player once")
    for name, rating in anchors.items():
        if name not in names:
            raise ConfigError(f"the anchor {name!r} does not play{suggestion(name, names)}")
        if not np.isfinite(rating):
            raise ConfigError(f"the anchor {name!r} has the rating {rating}; give a number")
    for match in matches:
        strangers = [name for name in match.players if name not in names]
        if strangers:
            raise ConfigError(f"{strangers[0]!r} played but is not among the names to be rated")


def default_anchors(names: Sequence[str], bots: Sequence[str] = ()) -> dict[str, float]:
    """Return who has 0 if nobody says otherwise: `random`, the weakest bot that plays, the first.

    bots: those of the game, the weakest first.
    """
    known = [REFERENCE, *bots, *names]
    return {next(name for name in known if name in names): 0.0} if names else {}


def score_of(result: MatchResult) -> PairScore:
    """Return a match of two seats as Elo takes it: by deals, each of which had both seats."""
    found = result.record
    score = np.take_along_axis(found.score, found.seat_of, axis=1)
    points = (np.sign(score[:, 0] - score[:, 1]) + 1) / 2
    by_deal = np.bincount(found.deal, points)
    counts = np.bincount(np.rint(2 * by_deal).astype(np.intp), minlength=DEAL_SHARES)
    deals = counts * (result.distinct_deals / result.deals)
    wins, draws = int((points == 1).sum()), int((points == 0.5).sum())
    one, two = (player.name for player in result.players)
    losses = len(points) - wins - draws
    return PairScore(one, two, wins, draws, losses, deals=tuple(deals.tolist()))


def rankings_of(result: MatchResult) -> Rankings:
    """Return a match as Plackett and Luce's model takes it."""
    found = result.record
    score = np.take_along_axis(found.score, found.seat_of, axis=1)
    places = (score[:, None, :] > score[:, :, None]).sum(axis=2)
    names = tuple(player.name for player in result.players)
    return Rankings(names, places, found.deal, result.distinct_deals / result.deals)
