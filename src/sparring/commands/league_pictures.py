"""A run's league as pictures: the ladder, who beats whom, ratings over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sparring.commands.curves import write_pages
from sparring.draw.charts.chart import Series
from sparring.draw.charts.league import Rung, ladder_page, past_page, payoff_page
from sparring.draw.charts.paper import Page
from sparring.league.ladder import payoff_of
from sparring.store.standings import Pair, Player, Standings

MOST_LINES = 8
"""Lines of ratings over time; more cannot be told apart."""


def write_pictures(
    standings: Standings, chosen: Sequence[Player], pairs: Sequence[Pair], folder: Path
) -> list[Path]:
    """Draw what there are numbers for; return the files."""
    pages = {"league-payoff.png": payoff(standings, chosen, pairs)}
    rungs = ladder(standings)
    if rungs:
        pages["league-ladder.png"] = ladder_page(rungs, title=f"{standings.run}: ladder")
        pages["league-ratings.png"] = past_page(past(standings), title=f"{standings.run}: ratings")
    return write_pages({folder / name: page for name, page in pages.items()})


def ladder(standings: Standings) -> list[Rung]:
    """Return everybody who has a rating, the best first."""
    return [
        Rung(
            player.name,
            player.rated.rating,
            player.rated.low,
            player.rated.high,
            fixed=player.rated.low == player.rated.high,
            bot=player.role == "bot",
        )
        for player in standings.players
        if player.rated
    ]


def past(standings: Standings) -> list[Series]:
    """Return what the learner was worth over time: its snapshots where they were taken, and bots.

    All ratings are those of the last time that everybody was rated, on one scale.
    """
    rated = [player for player in standings.players if player.rated]
    lines = []
    for role in sorted({player.role for player in rated if player.decisions is not None}):
        points = sorted(
            (player.decisions, player.rated.rating, player.rated.low, player.rated.high)
            for player in rated
            if player.rated and player.role == role and player.decisions is not None
        )
        lines.append(Series(f"snapshots, {role}", 0, *np.array(points, np.float64).T))
    ends = np.array([0.0, max((float(line.x.max()) for line in lines), default=1.0)])
    bots = [player for player in rated if player.role == "bot"][: MOST_LINES - len(lines)]
    for bot in bots:
        assert bot.rated
        lines.append(Series(bot.name, 0, ends, np.full(2, bot.rated.rating)))
    return lines


def payoff(standings: Standings, chosen: Sequence[Player], pairs: Sequence[Pair]) -> Page:
    """Draw a matrix: the learner against everybody, and the matches of snapshots if any."""
    facts = ["self: the learner's games so far, a draw being half a point"]
    facts += [f"{pairs[0].games:,} games per match"] if pairs else ["--matches fills the rest"]
    made = payoff_of(standings, chosen, pairs)
    return payoff_page(made, title=f"{standings.run}: who beats whom", facts=facts)
