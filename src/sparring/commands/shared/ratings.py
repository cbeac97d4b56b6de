"""Tables, notes and pictures of rated players, for `arena` and `ladder`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparring.commands.shared.curves import file_at, place_asked, write_pages
from sparring.commands.shared.printing import make_table, print_table
from sparring.draw.charts.league import Payoff, Rung, ladder_page, payoff_page
from sparring.draw.charts.page import SUFFIXES
from sparring.draw.names import short_names
from sparring.errors import ConfigError
from sparring.league.elo import unbounded_pairs
from sparring.league.ratings import PairScore, Rating
from sparring.league.round_robin import RoundRobinResult
from sparring.proof.exploitability import EXACT_GAMES

FAIR = "every deal from every seat"
MAX_NAMED = 12
"""Pairings that are named in a sentence."""
Rated = RoundRobinResult[Any]


def folder_of(out: str) -> Path | None:
    """Return where pictures go; nothing is made before there is something to draw."""
    if not out:
        return None
    if Path(out).suffix not in ("", *SUFFIXES[:-1]):
        known = f"a folder for payoff.png and ladder.png, or x{', x'.join(SUFFIXES[:-1])}"
        raise ConfigError(f"--out {out} is no picture; give {known}")
    return place_asked(out)


def print_ratings(found: Rated, origins: Mapping[str, str] | None = None) -> None:
    """Print the players, best first. origins: where each comes from."""
    numbers = ("Elo", "95 %", "points", "games")
    last = () if origins is None else ("from",)
    table = make_table(
        ("player", *numbers, *last), numbers=numbers, least=(*last, "games", "points")
    )
    for at, row in enumerate(found.ratings):
        interval = "fixed" if row.anchor else f"{row.low:.0f} .. {row.high:.0f}"
        points = "-" if row.score is None else f"{row.score:.1%}"
        cells = (f"{row.elo:.0f}", interval, points, f"{row.games:,}")
        origin = () if origins is None else (origins[row.player],)
        table.add_row(f"{at + 1} {row.player}", *cells, *origin)
    print_table(table)


def print_matrix(found: Rated) -> None:
    share = found.matrix()[0]
    columns = tuple(str(at + 1) for at in range(len(share)))
    table = make_table(("% won against", *columns), numbers=columns)
    for at, name in enumerate(found.order):
        shown = ("-" if np.isnan(x) else f"{100 * x:.1f}" for x in share[at])
        cells = ("·" if at == other else text for other, text in enumerate(shown))
        table.add_row(f"{at + 1} {name}", *cells)
    print_table(table)


def rating_notes(found: Rated) -> list[str]:
    """Return how the games were played, and what the ratings are measured from."""
    seats = found.rules.seats
    kind = "every pair" if seats == 2 else f"each alone against {seats - 1} of every other"
    fixed = [f"{row.player} at {row.elo:.0f}" for row in found.ratings if row.anchor]
    model = "Elo" if seats == 2 else "Elo by places (Plackett-Luce)"
    return [
        f"{found.games:,} games: {kind}, every deal from all {seats} seats; "
        "intervals hold the true value in 95 of 100 cases and count deals",
        f"{model}, measured from {', '.join(fixed)}; equals win {1 / seats:.1%}",
    ]


def doubts(found: Rated) -> list[str]:
    """Return which pairings say less than their number of games promises."""
    lines = []
    scores = [pairing.score() for pairing in found.pairings]
    if gaps := unbounded_pairs([score for score in scores if isinstance(score, PairScore)]):
        which = named([f"{one} - {two}" for one, two in gaps])
        lines.append(f"one side got every point, so the distance may be any larger: {which}")
    if repeats := [p for p in found.pairings if p.distinct_deals < p.deals]:
        which = named([f"{p.one} - {p.two}" for p in repeats])
        lines.append(f"deals repeat, and repeated ones count once: {which}")
    if found.rules.hides and found.rules.name in EXACT_GAMES:
        lines.append(
            "games that are won say little here; exploitability says more: sparring exploit RUN "
            "--exact"
        )
    return lines


def named(words: Sequence[str]) -> str:
    rest = len(words) - MAX_NAMED
    return ", ".join(words[:MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def draw(found: Rated, out: Path) -> list[Path]:
    """Draw the matrix and the ladder; return their files."""
    names = short_names(found.order)
    share, low, high = found.matrix()
    seats = found.rules.seats
    facts = [f"{found.games:,} games"]
    alone = [f"one against {seats - 1} of the other"] if seats > 2 else []
    payoff = Payoff(names, share, low, high, 1 / seats)
    rungs = [
        Rung(name, row.elo, row.low, row.high, row.anchor, row.player in found.rules.bots)
        for name, row in zip(names, found.ratings, strict=True)
    ]
    game = found.rules.name
    pages = {
        "payoff": payoff_page(payoff, title=f"{game}: who beats whom", facts=[*alone, *facts]),
        "ladder": ladder_page(rungs, title=f"{game}: ladder", facts=[*facts, FAIR]),
    }
    return write_pages({file_at(out, name): page for name, page in pages.items()})


def rating_values(row: Rating) -> dict[str, Any]:
    """Return a rating as JSON values."""
    return {
        **{"elo": row.elo, "low": row.low, "high": row.high},
        **{"points": row.score, "games": row.games, "anchor": row.anchor},
    }
