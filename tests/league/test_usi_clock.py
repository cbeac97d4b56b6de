"""The time that a USI `go` gives; nothing here looks at a clock."""

from __future__ import annotations

import pytest

from sparring import ConfigError
from sparring.league.usi.clock import MARGIN_S, GoLimits, read_go
from sparring.league.usi.thinking import budget_for
from sparring.search.budget import Budget


def seconds(line: str, seat: int = 0) -> float:
    return read_go(line.split(), seat).seconds


def test_a_fixed_time_leaves_a_margin() -> None:
    assert seconds("movetime 2000") == pytest.approx(2 - MARGIN_S)
    assert seconds("btime 0 wtime 0 byoyomi 10000") == pytest.approx(10 - MARGIN_S)
    assert 0 < seconds("movetime 100") < 0.1 - 0.05
    assert 0 < seconds("movetime 0") <= 0.001


def test_each_side_has_its_own_clock() -> None:
    line = "btime 400000 wtime 40000"
    assert seconds(line, 0) == pytest.approx(10 - MARGIN_S)
    assert seconds(line, 1) == pytest.approx(1 - MARGIN_S)
    assert seconds("btime 400000 wtime 0 binc 5000 winc 0") == pytest.approx(15 - MARGIN_S)
    assert 0 < seconds("btime -20 wtime 100") <= 0.001


@pytest.mark.parametrize("left", [0, 50, 1000, 60_000, 3_600_000])
@pytest.mark.parametrize("increment", [0, 100, 10_000])
@pytest.mark.parametrize("byoyomi", [0, 100, 10_000])
def test_a_move_never_takes_all_that_is_left(left: int, increment: int, byoyomi: int) -> None:
    line = f"btime {left} wtime 1 binc {increment} winc 1 byoyomi {byoyomi}"
    assert 0 < seconds(line) <= max(0.001, 0.999 * (left + byoyomi) / 1000)


def test_a_whole_game_stays_within_the_clock() -> None:
    left = 60.0
    for _ in range(300):
        left -= seconds(f"btime {int(1000 * left)} wtime 1") + 0.003  # and the way back
        assert left > 0


def test_analysis_has_no_end_and_nodes_have_no_time() -> None:
    assert read_go(["infinite"], 0) == GoLimits(until_stop=True)
    assert read_go(["ponder", "btime", "1000", "wtime", "1000"], 0) == GoLimits(until_stop=True)
    assert read_go(["nodes", "500"], 0) == GoLimits(simulations=500)
    assert not read_go([], 0)


@pytest.mark.parametrize("line", ["nodes", "nodes many", "movetime ٣", "btime wtime 100"])
def test_words_without_their_number_are_refused(line: str) -> None:
    with pytest.raises(ConfigError, match="needs a number"):
        read_go(line.split(), 0)


@pytest.mark.parametrize(
    ("own", "most", "limits", "budget"),
    [
        (None, 0, GoLimits(), None),
        (None, 0, GoLimits(simulations=50), Budget(50)),
        (None, 20, GoLimits(simulations=50), Budget(20)),
        (None, 0, GoLimits(seconds=2.0), Budget(0, 2.0, "gumbel")),
        (Budget(0, 1.0, "puct"), 0, GoLimits(seconds=2.0), Budget(0, 1.0, "puct")),
        (Budget(64), 64, GoLimits(seconds=2.0), Budget(64, 2.0)),
        (Budget(64), 64, GoLimits(), Budget(64)),
        (None, 9, GoLimits(until_stop=True), Budget(9, 0.0, "puct")),
    ],
)
def test_the_smallest_limit_holds(
    own: Budget | None, most: int, limits: GoLimits, budget: Budget | None
) -> None:
    assert budget_for(own, most, limits) == budget
