"""Elo: ratings that follow from matches, and how sure they are."""

from __future__ import annotations

import numpy as np
import pytest

from sparring.league.elo import Score, fit, open_gaps, rate


def test_ratings_are_those_that_points_were_made_from() -> None:
    true = np.array([0.0, 120.0, -80.0, 400.0])
    games = 1e7 * (1 - np.eye(4))
    games[0, 3] = games[3, 0] = 0  # these two never met
    points = games / (1 + 10 ** ((true[None] - true[:, None]) / 400))
    np.testing.assert_allclose(fit(games, points), true, atol=0.01)


def test_draws_are_half_a_point_and_lost_matches_stay_finite() -> None:
    names = ["a", "b", "c"]
    pairs = [Score("a", "b", 0, 0, 40), Score("b", "c", 10, 20, 10)]
    rows = {row.player: row for row in rate(names, pairs, 0)}
    assert rows["a"].elo == 0
    # Of the prior's draws this match has the one of a and one of b's two halves: 0.75 in the mean.
    assert rows["b"].elo == pytest.approx(400 * np.log10(40.375 / 0.375), abs=0.1)
    assert rows["c"].elo == pytest.approx(rows["b"].elo, abs=0.1)
    # 40 to 0 may well be luck, and says nothing about how far away b is.
    assert 300 < rows["b"].low < 600
    assert rows["b"].high > 1200
    assert (rows["b"].games, rows["b"].score) == (80, 0.75)


def test_more_games_make_narrower_intervals_around_the_truth() -> None:
    widths = []
    for games in (40, 4000):
        share = round(0.6 * games)
        pairs = [Score("a", "b", games - share, 0, share)]
        row = {row.player: row for row in rate(["a", "b"], pairs, 0)}["b"]
        assert row.low < 400 * np.log10(0.6 / 0.4) < row.high
        widths.append(row.high - row.low)
    assert row.low < row.elo < row.high
    # Standard errors of 60 % over 40 games are 56 Elo: an interval of about 220.
    assert widths[0] == pytest.approx(220, rel=0.15)
    assert widths[1] == pytest.approx(widths[0] / 10, rel=0.15)


def test_players_in_between_close_a_gap() -> None:
    lost = [Score("a", "b", 0, 0, 9), Score("b", "c", 4, 0, 6), Score("c", "d", 9, 0, 0)]
    assert open_gaps(lost) == [("a", "b"), ("c", "d")]
    bridged = [*lost, Score("a", "x", 1, 0, 9), Score("x", "c", 0, 2, 8)]
    assert open_gaps(bridged) == [("c", "d")]
