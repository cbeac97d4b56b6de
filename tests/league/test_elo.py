"""Elo: ratings that follow from matches, and how sure they are."""

from __future__ import annotations

import numpy as np
import pytest

from sparring import ConfigError
from sparring.league.elo import PairScore, fit, unbounded_pairs
from sparring.league.ratings import connected_groups, rate


def test_ratings_are_those_that_points_were_made_from() -> None:
    true = np.array([0.0, 120.0, -80.0, 400.0])
    games = 1e7 * (1 - np.eye(4))
    games[0, 3] = games[3, 0] = 0  # these two never met
    points = games / (1 + 10 ** ((true[None] - true[:, None]) / 400))
    np.testing.assert_allclose(fit(games, points), true, atol=0.01)


def test_draws_are_half_a_point_and_lost_matches_stay_finite() -> None:
    names = ["a", "b", "c"]
    pairs = [PairScore("a", "b", 0, 0, 40), PairScore("b", "c", 10, 20, 10)]
    rows = {row.player: row for row in rate(names, pairs)}
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
        pairs = [PairScore("a", "b", games - share, 0, share)]
        row = {row.player: row for row in rate(["a", "b"], pairs)}["b"]
        assert row.low < 400 * np.log10(0.6 / 0.4) < row.high
        widths.append(row.high - row.low)
    assert row.low < row.elo < row.high
    # Standard errors of 60 % over 40 games are 56 Elo: an interval of about 220.
    assert widths[0] == pytest.approx(220, rel=0.15)
    assert widths[1] == pytest.approx(widths[0] / 10, rel=0.15)


def test_players_in_between_close_a_gap() -> None:
    lost = [
        PairScore("a", "b", 0, 0, 9),
        PairScore("b", "c", 4, 0, 6),
        PairScore("c", "d", 9, 0, 0),
    ]
    assert unbounded_pairs(lost) == [("a", "b"), ("c", "d")]
    bridged = [*lost, PairScore("a", "x", 1, 0, 9), PairScore("x", "c", 0, 2, 8)]
    assert unbounded_pairs(bridged) == [("c", "d")]


def test_repeated_pairs_add_up() -> None:
    """Three matches of one pair, one of them told from the other side, are one longer match."""
    once = rate(["a", "b"], [PairScore("a", "b", 30, 40, 130)])
    matches = [
        PairScore("a", "b", 10, 20, 70),
        PairScore("b", "a", 40, 10, 0),
        PairScore("a", "b", 20, 10, 20),
    ]
    assert rate(["a", "b"], matches) == once
    assert once[0].player == "b"
    # Half a game of the prior is won and half is lost: 150.5 of 201 points.
    assert once[0].elo == pytest.approx(400 * np.log10(150.5 / 50.5), abs=0.01)
    assert (once[0].games, once[0].score) == (200, 0.75)


def test_a_draw_is_worth_half_a_win() -> None:
    drawn = rate(["a", "b"], [PairScore("a", "b", 0, 100, 100)])
    decided = rate(["a", "b"], [PairScore("a", "b", 50, 0, 150)])
    assert drawn[0].elo == pytest.approx(decided[0].elo)
    assert drawn[0].elo == pytest.approx(400 * np.log10(150.5 / 50.5), abs=0.01)
    # Half points vary less than whole ones.
    assert drawn[0].high - drawn[0].low < decided[0].high - decided[0].low


def test_players_that_no_games_connect_are_not_compared() -> None:
    names = ["a", "x", "b", "y", "z"]
    scores = [
        PairScore("a", "b", 25, 0, 75),
        PairScore("y", "x", 75, 0, 25),
        PairScore("a", "z", 0, 0, 0),
    ]
    assert connected_groups(names, scores) == [["a", "b"], ["x", "y"], ["z"]]
    rows = rate(names, scores)
    assert [(row.player, row.group) for row in rows] == [
        ("b", 0),
        ("a", 0),
        ("y", 1),
        ("x", 1),
        ("z", 2),
    ]
    by_name = {row.player: row for row in rows}
    # Each group has a zero of its own, and is rated as if the others did not exist.
    assert [by_name[name].elo for name in "axz"] == [0, 0, 0]
    alone = rate(["a", "b"], scores[:1])
    assert rows[:2] == alone
    assert by_name["y"].elo == pytest.approx(by_name["b"].elo)
    assert (by_name["z"].games, by_name["z"].score) == (0, None)
    bridge = PairScore("b", "x", 50, 0, 50)
    assert connected_groups(names[:4], [*scores[:2], bridge]) == [["a", "x", "b", "y"]]


def test_a_circle_of_wins_leaves_no_gap() -> None:
    circle = [
        PairScore("a", "b", 9, 0, 0),
        PairScore("b", "c", 9, 0, 0),
        PairScore("c", "a", 9, 0, 0),
    ]
    assert unbounded_pairs(circle) == []
    assert unbounded_pairs(circle[:2]) == [("a", "b"), ("b", "c")]
    assert unbounded_pairs([PairScore("a", "b", 9, 0, 0), PairScore("a", "b", 0, 0, 1)]) == []


def test_nobody_meets_itself() -> None:
    with pytest.raises(ConfigError, match="a plays against itself"):
        unbounded_pairs([PairScore("a", "a", 1, 0, 1)])
