"""Statistics over seeds, held against answers that are known."""

from __future__ import annotations

import numpy as np
import pytest

from sparring.league.statistics import (
    Found,
    band,
    bounds,
    drawn_again,
    estimate,
    improvement,
    interquartile_mean,
    value_at,
)


def test_the_interquartile_mean_leaves_out_the_outer_quarters() -> None:
    assert interquartile_mean([1, 2, 3, 4, 5, 6, 7, 8]) == 4.5
    assert interquartile_mean([1000, 2, 3, -1000]) == 2.5
    assert interquartile_mean([1, 2, 6]) == 3.0  # of three there is no quarter
    # Of ten, two at each end, as scipy's trim_mean(0.25) and rliable have it.
    assert interquartile_mean([0, 0, 1, 2, 3, 4, 5, 6, 90, 99]) == 3.5
    rows = interquartile_mean([[1, 2, 3, 4], [5, 5, 5, 9]])
    assert rows.tolist() == [2.5, 5.0]


def test_probability_of_improvement_counts_pairs() -> None:
    assert improvement([3, 4], [1, 2]) == 1.0
    assert improvement([1, 2], [3, 4]) == 0.0
    assert improvement([1, 3], [2, 2]) == 0.5
    assert improvement([1, 2, 3], [2]) == 0.5  # above, equal, below
    assert Found(0.25, 0.125, 0.5).turned() == Found(0.75, 0.5, 0.875)
    assert Found(1.0).turned() == Found(0.0)
    assert improvement([5, 5, 0], [5, 1]) == pytest.approx((0.5 + 1 + 0.5 + 1) / 6)


def test_intervals_are_those_of_the_bootstrap() -> None:
    # Two runs at 0 and 1: the mean of two drawn again is 0, 1/2 or 1 with 1/4, 1/2, 1/4.
    found = estimate(interquartile_mean, [0.0, 1.0])
    assert found == Found(0.5, 0.0, 1.0)
    # The mean of many normal values: about 1.96 standard errors to each side.
    values = np.random.default_rng(3).normal(10.0, 2.0, 400)
    wide = estimate(lambda group: group.mean(axis=-1), values)
    assert wide.low is not None
    assert wide.high is not None
    half = 1.96 * values.std() / 20
    assert wide.value - wide.low == pytest.approx(half, rel=0.1)
    assert wide.high - wide.value == pytest.approx(half, rel=0.1)


def test_the_bootstrap_covers_the_truth_about_as_often_as_it_says() -> None:
    draw = np.random.default_rng(0)
    hit = 0
    for _ in range(200):
        low, high = bounds(interquartile_mean, [draw.normal(0, 1, 20)], samples=300, seed=1)
        hit += bool(low <= 0 <= high)
    assert 174 <= hit <= 199


def test_groups_are_drawn_apart_and_the_same_way_every_time() -> None:
    ones, twos = np.ones(3), np.full(5, 2.0)
    first, second = drawn_again([ones, twos], samples=50, seed=4)
    assert first.shape == (50, 3)
    assert second.shape == (50, 5)
    assert set(first.flat) == {1.0}
    assert set(second.flat) == {2.0}
    mixed = [np.arange(6.0), np.arange(4.0)]
    same = (estimate(improvement, *mixed, seed=7) for _ in range(2))
    assert next(same) == next(same)


def test_one_run_says_nothing_about_seeds() -> None:
    assert estimate(interquartile_mean, [0.7]) == Found(0.7)
    assert estimate(improvement, [0.7, 0.8], [0.6]) == Found(1.0)


def test_a_band_spans_what_all_curves_have() -> None:
    rising = (np.array([0.0, 10.0]), np.array([0.0, 1.0]))
    later = (np.array([2.0, 6.0]), np.array([0.4, 0.8]))
    found = band([rising, later], points=5)
    assert found.x.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]
    np.testing.assert_allclose(found.values, [0.3, 0.4, 0.5, 0.6, 0.7])
    assert found.low is not None
    assert found.high is not None
    np.testing.assert_allclose(found.low, [0.2, 0.3, 0.4, 0.5, 0.6])
    np.testing.assert_allclose(found.high, [0.4, 0.5, 0.6, 0.7, 0.8])
    alone = band([rising])
    assert alone.low is None
    assert alone.values.tolist() == [0.0, 1.0]
    apart = band([rising, (np.array([11.0, 12.0]), np.array([0.0, 0.0]))])
    assert len(apart.x) == 0
    assert value_at(*rising, 2.5) == 0.25
