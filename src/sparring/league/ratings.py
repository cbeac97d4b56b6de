"""How strong players are, from whatever they played: one scale, anchored, with 95 % intervals.

Two seats are rated by Elo (`elo.py`), more by Plackett and Luce's model (`plackett_luce.py`), of
which Elo is the case of two. An anchor keeps the rating it was given, so that the ratings of a
league that grows do not drift: a player is as strong as its distance from the anchors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparring.errors import ConfigError, nearest
from sparring.league import elo
from sparring.league.elo import Rating, Score
from sparring.league.plackett_luce import Rankings, rate_rankings
from sparring.league.results import MatchResult

__all__ = ["Rankings", "Rating", "Score", "rankings_of", "rate", "score_of", "usual_anchors"]

ANCHOR = "random"
"""The bot that has 0 wherever it plays: the same one in every game, and it never changes."""
DEAL_SHARES = 5
"""A deal of two games brings 0, 1/2, 1, 1 1/2 or 2 points."""


def rate(
    names: Sequence[str],
    matches: Sequence[Score] | Sequence[Rankings],
    *,
    anchors: Mapping[str, float] | None = None,
    seats: int = 2,
    seed: int = 0,
) -> list[Rating]:
    """Return everybody's rating, the best first.

    matches: of two seats, how many games were won, drawn and lost (`Score`); of more, the places of
        every game (`Rankings`). Matches of a player against itself say nothing and count nothing.
    anchors: players whose ratings are given. Left out: `random` has 0, or the first of the names.
        Players whom no games connect with an anchor are a group with a zero of its own.
    seats: of the game.
    seed: of the bootstrap, from which the intervals come.
    """
    anchors = usual_anchors(names) if anchors is None else anchors
    check_names(names, anchors, matches)
    scores = [match for match in matches if isinstance(match, Score)]
    tables = [match for match in matches if isinstance(match, Rankings)]
    if scores and tables:
        raise ConfigError("matches are scores of two and rankings of tables; rate them apart")
    if not tables:
        met = [score for score in scores if score.one != score.two]
        return elo.rate(names, met, seed, anchors)
    wrong = [len(table.players) for table in tables if len(table.players) != seats]
    if wrong:
        raise ConfigError(f"seats={seats}, but a table has {wrong[0]} players; say seats=")
    return rate_rankings(names, [t for t in tables if len(t.names) > 1], seed, anchors)


def check_names(
    names: Sequence[str], anchors: Mapping[str, float], matches: Sequence[Score | Rankings]
) -> None:
    """Refuse players twice, and words that are no player's."""
    twice = [name for name in dict.fromkeys(names) if list(names).count(name) > 1]
    if twice:
        raise ConfigError(f"{twice[0]} is there twice; give each player once")
    for name, rating in anchors.items():
        if name not in names:
            raise ConfigError(f"the anchor {name!r} does not play{nearest(name, names)}")
        if not np.isfinite(rating):
            raise ConfigError(f"the anchor {name!r} has the rating {rating}; give a number")
    for match in matches:
        players = (match.one, match.two) if isinstance(match, Score) else match.players
        strangers = [name for name in players if name not in names]
        if strangers:
            raise ConfigError(f"{strangers[0]!r} played but is not among the names to be rated")


def usual_anchors(names: Sequence[str], bots: Sequence[str] = ()) -> dict[str, float]:
    """Return who has 0 if nobody says otherwise: `random`, the weakest bot that plays, the first.

    bots: those of the game, the weakest first.
    """
    known = [ANCHOR, *bots, *names]
    return {next(name for name in known if name in names): 0.0} if names else {}


def score_of(result: MatchResult) -> Score:
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
    return Score(one, two, wins, draws, losses, deals=tuple(deals.tolist()))


def rankings_of(result: MatchResult) -> Rankings:
    """Return a match as Plackett and Luce's model takes it."""
    found = result.record
    score = np.take_along_axis(found.score, found.seat_of, axis=1)
    places = (score[:, None, :] > score[:, :, None]).sum(axis=2)
    names = tuple(player.name for player in result.players)
    return Rankings(names, places, found.deal, result.distinct_deals / result.deals)
