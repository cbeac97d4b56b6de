"""Intervals mean what they say: over deals, at 0 and 100 %, for repeats and for few games."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparring.league.intervals import (
    deal_variance,
    is_skewed,
    mean_interval,
    share_interval,
    student_95,
    welch_95,
    wilson,
)

DEALS = 150


def covered(values: np.ndarray, truth: float) -> float:
    """The part of matches [matches, deals, rotations] whose interval holds the truth."""
    _, deals, rotations = values.shape
    deal = np.repeat(np.arange(deals), rotations)
    found = [share_interval(match.ravel(), deal, deals) for match in values]
    return float(np.mean([low <= truth <= high for low, high in found]))


@pytest.mark.few(4)
@pytest.mark.parametrize("share", [0.02, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("rotations", [1, 2, 4])
def test_win_intervals_cover_the_truth(share: float, rotations: int) -> None:
    rng = np.random.default_rng(1)
    alike = rng.random((1000, DEALS, rotations)) < share
    assert covered(alike, share) > 0.93
    # The cards decide: a deal is won or lost from every seat.
    together = np.repeat(rng.random((1000, DEALS, 1)) < share, rotations, axis=2)
    assert covered(together, share) > 0.93
    # The seats decide: a good deal for one seat is a bad one for another.
    places = (np.arange(rotations) + rng.integers(rotations, size=(1000, DEALS, 1))) % rotations
    assert covered(places == 0, 1 / rotations) > 0.93


def test_deals_and_not_games_are_counted() -> None:
    rng = np.random.default_rng(3)
    won = rng.random(400) < 0.3
    deal = np.arange(400)
    alone = share_interval(won, deal, 400)
    assert alone == pytest.approx(wilson(won.mean(), 400), abs=1e-3)
    # Four games that end alike are worth one.
    repeated = share_interval(np.tile(won, 4), np.tile(deal, 4), 400)
    assert repeated == pytest.approx(alone, abs=1e-9)
    # A deal that repeats another one is worth nothing.
    again = share_interval(np.tile(won, 4), np.arange(1600), 400)
    assert again == pytest.approx(alone, abs=1e-3)


def test_paired_deals_are_sharper_where_the_seat_decides() -> None:
    rng = np.random.default_rng(4)
    lucky = rng.integers(2, size=(1000, 1))
    won = (np.arange(2) == lucky) ^ (rng.random((1000, 2)) < 0.1)
    deal = np.repeat(np.arange(1000), 2)
    low, high = share_interval(won.ravel(), deal, 1000)
    plain_low, plain_high = wilson(won.mean(), 2000)
    assert high - low < 0.7 * (plain_high - plain_low)


def test_no_interval_is_empty() -> None:
    assert wilson(0.0, 100)[0] == 0
    assert 0.03 < wilson(0.0, 100)[1] < 0.04
    assert wilson(1.0, 100)[1] == 1
    deal = np.repeat(np.arange(100), 4)
    for share in (0.0, 1.0):
        low, high = share_interval(np.full(400, share), deal, 100)
        assert (low, high) == wilson(share, 100)
    # One win more never makes the interval narrower at the edge.
    one = np.zeros(400)
    one[0] = 1
    assert share_interval(one, deal, 100)[1] > wilson(0.0, 100)[1]
    always_a_quarter = np.tile([1.0, 0.0, 0.0, 0.0], 100)
    low, high = share_interval(always_a_quarter, deal, 100)
    assert 0.01 < high - low < 0.06
    assert low < 0.25 < high


def test_one_deal_says_nothing_about_how_deals_differ() -> None:
    deal = np.zeros(4, np.intp)
    assert math.isnan(deal_variance(np.arange(4.0), deal))
    assert all(math.isnan(end) for end in mean_interval(np.arange(4.0), deal, 1))
    assert share_interval(np.array([1.0, 0, 0, 0]), deal, 1) == wilson(0.25, 1)


def test_score_intervals_cover() -> None:
    rng = np.random.default_rng(2)
    cards = rng.exponential(50, (1000, 200, 1))
    scores = (cards + rng.normal(0, 10, (1000, 200, 2))).astype(np.float32)
    deal = np.repeat(np.arange(200), 2)
    found = [mean_interval(match.ravel(), deal, 200) for match in scores]
    inside = np.mean([low < 50 < high for low, high in found])
    assert 0.92 < inside < 0.97


@pytest.mark.parametrize(
    ("degrees", "wide"),
    [
        *((1, 12.7062), (2, 4.30265), (3, 3.18245), (4, 2.77645), (5, 2.57058)),
        *(
            (1.5, 6.01666),
            (5.5, 2.50186),
            (6, 2.44691),
            (9, 2.26216),
            (19, 2.09302),
            (127, 1.97882),
            (10_000, 1.96020),
        ),
    ],
)
def test_few_deals_say_little_about_their_own_spread(degrees: float, wide: float) -> None:
    assert student_95(degrees) == pytest.approx(wide, rel=1e-4)


def test_score_intervals_of_a_handful_of_episodes_cover() -> None:
    scores = np.random.default_rng(3).normal(7, 2, (4000, 5))
    found = [mean_interval(match, np.arange(5), 5) for match in scores]
    assert 0.94 < np.mean([low < 7 < high for low, high in found]) < 0.96


def test_a_deal_with_fewer_games_weighs_less() -> None:
    """A match against an engine may stop within a pair."""
    values = np.array([1.0, 0, 1, 1, 0])
    deal = np.array([0, 0, 1, 1, 2])
    rest = np.array([-0.2, 0.8, -0.6]) * 3 / 5
    assert deal_variance(values, deal) == pytest.approx((rest**2).sum() / 2)


def test_welchs_interval_by_hand() -> None:
    # Variances 1 and 1 over 3 values: error sqrt(2/3), (2/3)^2 / (2 * (1/3)^2 / 2) = 4 degrees.
    assert welch_95([1, 2, 3], [2, 3, 4]) == pytest.approx(2.776 * math.sqrt(2 / 3), abs=2e-3)
    # Variances 2 and 18 over 2 values: error sqrt(10), 10^2 / (1^2 + 9^2) degrees.
    wide = student_95(100 / 82) * math.sqrt(10)
    assert welch_95([0, 2], [0, 6]) == pytest.approx(wide)
    assert welch_95([1, 1], [1, 1]) == 0
    assert welch_95([1], [1, 2]) is None


@pytest.mark.few(5)
@pytest.mark.parametrize("deals", [5, 8, 12, 32, 128])
@pytest.mark.parametrize("spread", [0.0, 0.5, 0.8])
def test_means_of_scores_that_miss_the_truth_in_silence_are_few(spread: float, deals: int) -> None:
    """Skewed scores have too narrow an interval, and then that is said: lognormal ones here."""
    rng = np.random.default_rng(deals)
    values = rng.lognormal(0, spread, (1000, deals)) if spread else rng.normal(1, 1, (1000, deals))
    truth, deal = math.exp(spread**2 / 2), np.arange(deals)
    held = [low <= truth <= high for low, high in (mean_interval(v, deal, deals) for v in values)]
    warned = [is_skewed(match, deal) for match in values]
    assert np.mean(np.logical_or(held, warned)) >= 0.93
    if not spread and deals >= 32:
        assert np.mean(warned) < 0.1, "a bell is seldom called skewed"


def test_deals_that_are_all_alike_are_not_skewed() -> None:
    assert not is_skewed(np.ones(8), np.repeat(np.arange(4), 2))
    assert is_skewed(np.array([0.0, 0, 0, 0, 0, 0, 0, -99]), np.arange(8))
