"""Whom a league meets: weights, decay and the gate, by hand and over all sorts of results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparring.config.learning import LeagueConfig
from sparring.config.ranges import settings_of
from sparring.errors import ConfigError
from sparring.league.matchmaking import (
    SAMPLING,
    ArchivedPolicy,
    WinDrawLoss,
    decayed,
    passes_gate,
    weights,
)


def known(*results: WinDrawLoss, **more: float) -> list[ArchivedPolicy]:
    return [ArchivedPolicy(number, f"h{number}", results=one) for number, one in enumerate(results)]


BEATEN, LOST, EVEN = WinDrawLoss(wins=96), WinDrawLoss(losses=96), WinDrawLoss(wins=48, losses=48)
# With four drawn games beside, the shares are 98, 2 and 50 %.


def test_the_choices_are_those_of_the_settings() -> None:
    assert set(settings_of(LeagueConfig())["sampling"][1].words) == set(SAMPLING)  # type: ignore[union-attr]
    with pytest.raises(
        ConfigError, match=r"league\.sampling 'pfspp' is unknown; did you mean 'pfsp'"
    ):
        weights("pfspp", known(EVEN))


def test_uniform_and_newest() -> None:
    past = known(BEATEN, LOST, EVEN, EVEN, EVEN)
    assert weights("uniform", past) == pytest.approx([0.2] * 5)
    assert weights("newest", past) == pytest.approx([0.05] * 4 + [0.8])
    assert weights("newest", past[::-1]) == pytest.approx([0.8] + [0.05] * 4)  # by number
    assert weights("newest", past[:1]) == pytest.approx([1.0])


def test_pfsp_meets_hard_ones_and_even_ones() -> None:
    past = known(BEATEN, LOST, EVEN)
    square = np.array([0.02**2, 0.98**2, 0.5**2])
    assert weights("pfsp", past) == pytest.approx(square / square.sum())
    variance = np.array([0.98 * 0.02, 0.02 * 0.98, 0.25])
    assert weights("pfsp-even", past) == pytest.approx(variance / variance.sum())


def test_a_policy_without_games_counts_as_an_equal() -> None:
    new, even = known(WinDrawLoss(), WinDrawLoss(draws=10))
    assert new.share == even.share == 0.5
    assert weights("pfsp", [new, even]) == pytest.approx([0.5, 0.5])


def test_a_share_that_fell_is_met_again() -> None:
    held = ArchivedPolicy(0, "held", results=BEATEN, best_share=0.98)
    fallen = ArchivedPolicy(1, "fallen", results=EVEN, best_share=0.98)
    never = ArchivedPolicy(2, "never", results=LOST, best_share=0.5)
    # 48 points of share lost by both; one of them never had more than an equal's.
    assert weights("forgotten", [held, fallen, never]) == pytest.approx(
        [0.1 / 3, 0.45 + 0.1 / 3, 0.45 + 0.1 / 3]
    )
    assert weights("forgotten", [held, held]) == pytest.approx([0.5, 0.5])


def test_who_is_not_met_any_more_comes_back_to_be_tried() -> None:
    results = {"old": BEATEN}
    for _ in range(200):
        results = decayed(results, 0.97)
    old = ArchivedPolicy(0, "old", results=results["old"], best_share=0.98)
    fresh = ArchivedPolicy(1, "fresh", results=BEATEN, best_share=0.98)
    assert old.share == pytest.approx(0.5, abs=0.05)
    old_weight, fresh_weight = weights("forgotten", [old, fresh])
    assert old_weight > 10 * fresh_weight


def test_skill_is_a_range_of_ratings() -> None:
    ratings = [1000.0, 1150.0, 1400.0, 1600.0, None]
    past = [ArchivedPolicy(at, f"h{at}", rating=rating) for at, rating in enumerate(ratings)]
    found = weights("skill", past, learner_rating=1000.0)
    assert found / found[0] == pytest.approx([1, 1, 0.5, 0.25, 1])
    assert weights("skill", past) == pytest.approx([0.2] * 5)
    far = weights("skill", past[:4], learner_rating=1e9)
    assert far[3] == far.max()


counts = st.floats(0, 1e12)
results_of_games = st.builds(WinDrawLoss, counts, counts, counts)
policies = st.lists(
    st.builds(
        ArchivedPolicy,
        number=st.integers(0, 10**6),
        hash=st.text("0123456789abcdef", max_size=4),
        results=results_of_games,
        best_share=st.floats(0, 1),
        rating=st.none() | st.floats(-1e6, 1e6),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=20, deadline=None)
@given(past=policies, rating=st.none() | st.floats(-1e6, 1e6))
def test_weights_can_always_be_drawn_from(past: list[ArchivedPolicy], rating: float | None) -> None:
    for choose in SAMPLING:
        found = weights(choose, past, learner_rating=rating)
        assert found.shape == (len(past),)
        assert np.isfinite(found).all()
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(1)


def test_nobody_is_met_where_nobody_is() -> None:
    assert all(len(weights(choose, [])) == 0 for choose in SAMPLING)


def test_old_games_count_less_and_shares_stay() -> None:
    before = {"a": WinDrawLoss(8, 4, 4), 3: WinDrawLoss(1)}
    after = decayed(before, 0.5)
    assert after["a"] == WinDrawLoss(4, 2, 2)
    assert after[3] + WinDrawLoss(draws=1) == WinDrawLoss(0.5, 1, 0)


def test_the_gate_needs_its_share_over_enough_games() -> None:
    assert passes_gate(WinDrawLoss(), 0.0, archived=3)
    assert passes_gate(WinDrawLoss(), 0.6, archived=0)  # or there would never be a past to beat
    assert not passes_gate(WinDrawLoss(wins=255), 0.6, archived=1)
    assert passes_gate(WinDrawLoss(wins=256), 0.6, archived=1)
    assert passes_gate(WinDrawLoss(wins=50, draws=20, losses=40), 0.5, archived=1, games=100)
    assert not passes_gate(WinDrawLoss(wins=50, draws=20, losses=41), 0.55, archived=1, games=100)
