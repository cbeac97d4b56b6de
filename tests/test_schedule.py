"""Settings that change on the way: how they are written, and what they are when."""

from __future__ import annotations

from typing import Any

import pytest

from sparring.errors import ConfigError
from sparring.schedule import Moment, Schedule


@pytest.mark.parametrize(
    ("given", "moments"),
    [
        (0.3, {(0, 0.0): 0.3, (10**9, 1.0): 0.3}),
        ("1e-3", {(0, 0.0): 1e-3}),
        (
            "0:1.0,2e6:0.2",
            {(0, 1.0): 1.0, (10**6, 0.0): 0.6, (2 * 10**6, 0.0): 0.2, (10**9, 0): 0.2},
        ),
        ([[0, 1.0], [2e6, 0.2]], {(10**6, 0.0): 0.6}),
        ("0%:1,100%:0.1", {(0, 0.0): 1.0, (0, 0.5): 0.55, (0, 1.0): 0.1}),
        ([["0%", 1], ["50%", 0], ["100%", 4]], {(7, 0.25): 0.5, (7, 0.75): 2.0}),
        (
            "0:1,100:2,200:3 stepped",
            {(0, 0.0): 1.0, (99, 0.0): 1.0, (100, 0.0): 2.0, (300, 0): 3.0},
        ),
        ("50:1,100:2", {(0, 0.0): 1.0, (75, 0.0): 1.5}),
    ],
)
def test_a_schedule_is_read_and_followed(given: Any, moments: dict[Any, float]) -> None:
    schedule = Schedule.read(given)
    for (decisions, progress), value in moments.items():
        assert schedule.at(Moment(decisions, progress)) == pytest.approx(value)
    again = Schedule.read(schedule.plain())
    assert again == schedule
    assert hash(again) == hash(schedule)
    assert eval(repr(schedule)) == schedule


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("fast", "'fast' is no schedule; write a number"),
        (None, "None is no schedule"),
        (True, "True is no schedule"),
        ([], "at least one point"),
        ([[0, 1], [1]], "is no schedule"),
        ("0:1,50%:2", "either all decisions or all shares"),
        ("5:1,3:2", "follow one another"),
        ("3:1,3:2", "follow one another"),
        ("0%:1,120%:2", "outside of the run"),
        ("-5:1,3:2", "outside of the run"),
        ("nan", "finite numbers"),
    ],
)
def test_what_is_no_schedule_is_named(given: Any, hint: str) -> None:
    with pytest.raises(ConfigError, match="ppo.lr: .*" + hint.replace("(", "\\(")):
        Schedule.read(given, "ppo.lr")
