"""A run's league as pictures: the ladder, who beats whom, ratings over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sparring.draw.charts.ladder import Past, Rung, draw_ladder, draw_past
from sparring.draw.charts.payoff import draw_payoff
from sparring.league.told import payoff_of
from sparring.store.files import write_atomic
from sparring.store.standings import Pair, Player, Standings
from sparring.targets import writing

MOST_LINES = 8
"""Lines of ratings over time; more cannot be told apart."""


def write_pictures(
    standings: Standings, chosen: Sequence[Player], pairs: Sequence[Pair], folder: Path
) -> list[Path]:
    """Draw what there are numbers for; return the files."""
    drawn = {"league-payoff.png": payoff(standings, chosen, pairs)}
    rungs = ladder(standings)
    if rungs:
        drawn["league-ladder.png"] = draw_ladder(rungs, title=f"{standings.run}: ladder")
        drawn["league-ratings.png"] = draw_past(past(standings), title=f"{standings.run}: ratings")
    with writing(f"into {folder}", "--out"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in drawn.items():
            write_atomic(folder / name, data)
    return [folder / name for name in drawn]


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


def past(standings: Standings) -> list[Past]:
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
        lines.append(Past(f"snapshots, {role}", *np.array(points, np.float64).T))
    ends = np.array([0.0, max((float(line.x.max()) for line in lines), default=1.0)])
    bots = [player for player in rated if player.role == "bot"][: MOST_LINES - len(lines)]
    for bot in bots:
        assert bot.rated
        lines.append(Past(bot.name, ends, np.full(2, bot.rated.rating)))
    return lines


def payoff(standings: Standings, chosen: Sequence[Player], pairs: Sequence[Pair]) -> bytes:
    """Draw a matrix: the learner against everybody, and the matches of snapshots if any."""
    facts = ["self: the learner's games so far, a draw being half a point"]
    facts += [f"{pairs[0].games:,} games per match"] if pairs else ["--matches fills the rest"]
    made = payoff_of(standings, chosen, pairs)
    return draw_payoff(made, title=f"{standings.run}: who beats whom", facts=facts)
