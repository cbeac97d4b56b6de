"""Statistics over seeds, held against answers that are known."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest

from sparring.league.statistics import (
    MIN_RUNS,
    Estimate,
    Floats,
    band,
    bootstrap_interval,
    bootstrap_samples,
    estimate,
    improvement,
    improvement_estimate,
    interquartile_mean,
    student_factor,
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
    assert Estimate(0.25, 0.125, 0.5).complement() == Estimate(0.75, 0.5, 0.875)
    assert Estimate(1.0).complement() == Estimate(0.0)
    assert improvement([5, 5, 0], [5, 1]) == pytest.approx((0.5 + 1 + 0.5 + 1) / 6)


def test_intervals_are_those_of_the_bootstrap() -> None:
    # Two runs at 0 and 1: the mean of two drawn again is 0, 1/2 or 1 with 1/4, 1/2, 1/4, and
    # Student's number of one degree is 12.7.
    found = estimate(interquartile_mean, [0.0, 1.0])
    half = 0.5 * 12.7062 / 1.95996 * 2**0.5
    assert found.value == 0.5
    assert (found.low, found.high) == pytest.approx((0.5 - half, 0.5 + half), rel=1e-4)
    # The mean of many normal values: about 1.96 standard errors to each side.
    values = np.random.default_rng(3).normal(10.0, 2.0, 400)
    wide = estimate(lambda group: group.mean(axis=-1), values)
    assert wide.low is not None
    assert wide.high is not None
    half = 1.96 * values.std() / 20
    assert wide.value - wide.low == pytest.approx(half, rel=0.1)
    assert wide.high - wide.value == pytest.approx(half, rel=0.1)


DRAWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "normal": lambda lot, shape: lot.normal(size=shape),
    "skewed": lambda lot, shape: lot.exponential(size=shape),
    "very skewed": lambda lot, shape: -lot.lognormal(0, 0.8, size=shape),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("runs", [MIN_RUNS, 5, 8, 12])
def test_intervals_without_a_warning_hold_the_truth_as_often_as_they_say(
    kind: str, runs: int
) -> None:
    lot = np.random.default_rng(runs)
    truth = interquartile_mean(DRAWS[kind](lot, (1, 400_000)))
    low, high = bootstrap_interval(interquartile_mean, DRAWS[kind](lot, (2000, runs)), samples=300)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.93


@pytest.mark.parametrize("runs", [MIN_RUNS, 5, 8, 12])
@pytest.mark.parametrize("ahead", [0.0, 0.7, 2.5])
def test_the_chance_to_be_stronger_is_held_too_however_clear_it_is(ahead: float, runs: int) -> None:
    lot = np.random.default_rng(runs)
    truth = NormalDist(0, 2**0.5).cdf(ahead)
    held = 0
    for _ in range(300):
        found = improvement_estimate(
            lot.normal(ahead, 1, runs).tolist(), lot.normal(0, 1, runs).tolist()
        )
        assert found.low is not None and found.high is not None
        held += found.low <= truth <= found.high
    assert held / 300 >= 0.93


def test_runs_that_are_all_better_are_no_certainty() -> None:
    found = improvement_estimate([3.0, 4.0, 5.0], [0.0, 1.0, 2.0])
    assert found.value == found.high == 1.0
    assert found.low is not None and found.low < 0.7
    other = improvement_estimate([0.0, 1.0, 2.0], [3.0, 4.0, 5.0]).complement()
    assert (other.value, other.high) == (1.0, 1.0) and other.low == pytest.approx(found.low)


def test_runs_are_drawn_the_same_way_every_time() -> None:
    again = bootstrap_samples(np.arange(5.0), samples=50, seed=4)
    assert again.shape == (50, 5)
    assert set(again.flat) == {0.0, 1.0, 2.0, 3.0, 4.0}
    same = (estimate(interquartile_mean, np.arange(6.0), seed=7) for _ in range(2))
    assert next(same) == next(same)


def test_shares_stay_between_0_and_1() -> None:
    assert estimate(interquartile_mean, [0.1, 0.9]).clipped() == Estimate(0.5, 0.0, 1.0)
    assert Estimate(0.7).clipped() == Estimate(0.7)
    wide = band([(np.array([0.0, 1.0]), np.array([y, y])) for y in (0.1, 0.9)]).clipped()
    assert wide.low is not None and wide.high is not None
    assert (wide.low.min(), wide.high.max()) == (0.0, 1.0)


def test_one_run_says_nothing_about_seeds() -> None:
    assert estimate(interquartile_mean, [0.7]) == Estimate(0.7)
    assert improvement_estimate([0.7, 0.8], [0.6]) == Estimate(1.0)


def test_a_band_spans_what_all_curves_have() -> None:
    rising = (np.array([0.0, 10.0]), np.array([0.0, 1.0]))
    later = (np.array([2.0, 6.0]), np.array([0.4, 0.8]))
    found = band([rising, later], points=5)
    assert found.x.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]
    np.testing.assert_allclose(found.values, [0.3, 0.4, 0.5, 0.6, 0.7])
    assert found.low is not None
    assert found.high is not None
    half = 0.1 * student_factor(2)
    np.testing.assert_allclose(found.low, found.values - half)
    np.testing.assert_allclose(found.high, found.values + half)
    alone = band([rising])
    assert alone.low is None
    assert alone.values.tolist() == [0.0, 1.0]
    apart = band([rising, (np.array([11.0, 12.0]), np.array([0.0, 0.0]))])
    assert len(apart.x) == 0
    assert value_at(*rising, 2.5) == 0.25
