"""The sequential test errs as seldom as it says, and stops early where it can."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from sparring import ConfigError
from sparring.league.intervals import Sprt

BATCH, MOST = 50, 4000


def deals(draw: np.random.Generator, share: float, count: int) -> npt.NDArray[np.float64]:
    """Two games each, a third of them drawn; luck of the cards makes the two go together."""
    luck = draw.choice([-0.15, 0.15], size=count)[:, None]
    lots = draw.random((count, 2))
    win, drawn = share + luck - 1 / 6, 1 / 3
    points = np.where(lots < win, 1.0, np.where(lots < win + drawn, 0.5, 0.0))
    return points.mean(1)


def verdicts(test: Sprt, elo: float, repeats: int) -> tuple[float, float, float]:
    """The shares of matches called stronger and weaker, and how many deals were played."""
    stronger = weaker = played = 0
    for repeat in range(repeats):
        draw = np.random.default_rng([repeat, round(elo) + 1000])
        seen = np.empty(0)
        while len(seen) < MOST:
            seen = np.append(seen, deals(draw, test.share(elo), BATCH))
            if found := test.verdict(seen):
                stronger += found == "stronger"
                weaker += found == "weaker"
                break
        played += len(seen)
    return stronger / repeats, weaker / repeats, played / repeats


def test_errors_are_as_rare_as_stated() -> None:
    test = Sprt(-20, 20, alpha=0.05, beta=0.1)
    wrong, right, deals_0 = verdicts(test, -20, 200)
    assert wrong <= 0.05 + 0.03
    assert right > 0.9
    right, wrong, deals_1 = verdicts(test, 20, 200)
    assert wrong <= 0.1 + 0.04
    assert right > 0.85
    _, _, deals_2 = verdicts(test, 100, 40)
    assert deals_2 < 0.5 * min(deals_0, deals_1)  # the clearer it is, the sooner it stops


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "beta"), [(0.05, 0.05), (0.01, 0.1)])
def test_error_rates_over_two_thousand_matches(alpha: float, beta: float) -> None:
    test = Sprt(-20, 20, alpha, beta)
    type_1 = verdicts(test, -20, 2000)[0]
    type_2 = verdicts(test, 20, 2000)[1]
    print(f"stated {alpha:.0%} and {beta:.0%}: {type_1:.1%} and {type_2:.1%}")
    assert type_1 <= alpha + 0.012
    assert type_2 <= beta + 0.012


def test_the_ratio_is_that_of_the_normal_one_in_long_even_matches() -> None:
    seen = deals(np.random.default_rng(0), 0.52, 4000)
    test = Sprt(0, 10)
    low, high = test.share(0), test.share(10)
    normal = len(seen) * (high - low) * (2 * seen.mean() - low - high) / (2 * seen.var())
    assert test.ratio(seen) == pytest.approx(normal, rel=0.02)
    mirrored = Sprt(-10, 0).ratio(1 - seen)
    assert mirrored == pytest.approx(-test.ratio(seen), rel=1e-6)


def test_one_sided_matches_are_decided_and_finite() -> None:
    assert Sprt().verdict(np.ones(500)) == "stronger"
    assert Sprt().verdict(np.zeros(500)) == "weaker"
    assert np.isfinite(Sprt().ratio(np.ones(10**6)))
    assert Sprt().ratio([]) == 0
    assert not Sprt().verdict([1.0])


def test_equals_at_a_table_of_four_win_a_quarter() -> None:
    test = Sprt(-30, 30, seats=4)
    assert test.share(0) == 0.25
    draw = np.random.default_rng(0)
    assert test.verdict(draw.choice([0, 0.25, 0.5, 0.75], size=4000)) == "stronger"
    assert test.verdict(draw.choice([0, 0.25], size=4000)) == "weaker"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"elo0": 5, "elo1": 5}, "elo0 5 must be below elo1 5"),
        ({"alpha": 0.0}, "alpha 0 must be above 0 and below 0.5"),
        ({"beta": 0.7}, "beta 0.7 must be above 0 and below 0.5"),
    ],
)
def test_what_cannot_be_tested_is_refused(settings: dict[str, float], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Sprt(**settings)
