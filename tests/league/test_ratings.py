"""Ratings: known strengths are found within their intervals, and nothing else moves them."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt
import pytest

from sparring import ConfigError, Rules
from sparring.league.arena import play_match
from sparring.league.elo import fit
from sparring.league.plackett_luce import Fit
from sparring.league.ratings import (
    Rankings,
    Rating,
    Score,
    rankings_of,
    rate,
    score_of,
    usual_anchors,
)

TRUE = {"random": 0.0, "a": 150.0, "b": -60.0, "c": 320.0, "d": 200.0}
TIES = 0.6
REPEATS = 200


def by_name(rows: list[Rating]) -> dict[str, Rating]:
    return {row.player: row for row in rows}


def synthetic_places(
    draw: np.random.Generator, elos: npt.ArrayLike, games: int
) -> npt.NDArray[np.intp]:
    """Games of players with known strengths, some of whom tie.

    A tie is as likely before the one order as before the other, so that it is worth half a win.
    """
    log = np.asarray(elos) * np.log(10) / 400
    order = np.argsort(-(log + draw.gumbel(size=(games, len(log)))), axis=1)
    places = np.argsort(order, axis=1)
    at = draw.integers(len(log) - 1, size=games)
    rows = np.arange(games)
    ahead, behind = order[rows, at], order[rows, at + 1]
    upset = 1 / (1 + np.exp(log[ahead] - log[behind]))
    tied = draw.random(games) < TIES * upset
    places[rows[tied], behind[tied]] = places[rows[tied], ahead[tied]]
    return places


def synthetic_score(draw: np.random.Generator, one: str, two: str, games: int) -> Score:
    places = synthetic_places(draw, [TRUE[one], TRUE[two]], games)
    won, lost = int((places[:, 0] < places[:, 1]).sum()), int((places[:, 0] > places[:, 1]).sum())
    return Score(one, two, won, games - won - lost, lost)


def coverage(seats: int, repeats: int, games: int) -> tuple[float, float]:
    """How often the truth is in its interval, and the share of games with ties."""
    inside: list[bool] = []
    ties: list[float] = []
    for repeat in range(repeats):
        draw = np.random.default_rng([seats, repeat])
        matches: list[Score] | list[Rankings]
        if seats == 2:
            matches = [synthetic_score(draw, *pair, games) for pair in combinations(TRUE, 2)]
            ties += [score.draws / score.games for score in matches]
        else:
            tables = [(one, *[two] * (seats - 1)) for one, two in permutations(TRUE, 2)]
            matches = [
                Rankings(table, synthetic_places(draw, [TRUE[n] for n in table], games))
                for table in tables
            ]
            ties += [float((np.diff(np.sort(t.places)) == 0).any(1).mean()) for t in matches]
        rows = rate(list(TRUE), matches, seats=seats, seed=repeat)
        inside += [row.low <= TRUE[row.player] <= row.high for row in rows if not row.anchor]
    return float(np.mean(inside)), float(np.mean(ties))


@pytest.mark.parametrize(("seats", "games"), [(2, 60), (4, 30)])
def test_intervals_hold_known_strengths(seats: int, games: int) -> None:
    covered, ties = coverage(seats, 12, games)
    assert ties > 0.1
    assert covered >= 0.85  # 48 ratings, 95 % of which are 46


@pytest.mark.slow
@pytest.mark.parametrize(("seats", "games"), [(2, 60), (4, 30), (2, 600), (4, 200)])
def test_stated_coverage_is_the_real_one(seats: int, games: int) -> None:
    covered, _ = coverage(seats, REPEATS, games)
    print(f"{seats} seats, {games} games per table: {covered:.1%} of {4 * REPEATS} intervals")
    # Ratings of one repeat go together, so that 200 repeats tell shares apart by about 3 %.
    assert 0.92 <= covered <= 0.985
