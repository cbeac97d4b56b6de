"""Settings that change on the way: how they are written, and what they are when."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from sparring.config import PPOConfig
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
        ("5ep:2 stepped", {(0, 0.0, 0): 2.0}),
        (
            "0ep:20,600ep:20,1000ep:1.5",
            {(0, 0.0, 0): 20, (10**9, 1.0, 600): 20, (0, 0.0, 800): 10.75, (0, 0.0, 10**6): 1.5},
        ),
        ([["10ep", 1], ["20ep", 2]], {(5, 1.0, 15): 1.5}),
    ],
)
def test_a_schedule_is_read_and_followed(given: Any, moments: dict[Any, float]) -> None:
    schedule = Schedule.read(given)
    for moment, value in moments.items():
        assert schedule.at(Moment(*moment)) == pytest.approx(value)
    again = Schedule.read(schedule.plain())
    assert again == schedule
    assert hash(again) == hash(schedule)
    assert eval(repr(schedule)) == schedule


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("fast", "'fast' is not a schedule; write a number"),
        (None, "None is not a schedule"),
        (True, "True is not a schedule"),
        ([], "at least one point"),
        ([[0, 1], [1]], "is not a schedule"),
        ("0:1,50%:2", "either all decisions, all percent"),
        ("0ep:1,50:2", "all decisions, all percent"),
        ("5:1,3:2", "ascending order"),
        ("3:1,3:2", "ascending order"),
        ("0%:1,120%:2", "outside of the run"),
        ("-5:1,3:2", "outside of the run"),
        ("nan", "finite numbers"),
    ],
)
def test_what_is_no_schedule_is_named(given: Any, hint: str) -> None:
    with pytest.raises(ConfigError, match="ppo.lr: .*" + hint.replace("(", "\\(")):
        Schedule.read(given, "ppo.lr")


@pytest.mark.parametrize(
    ("given", "length", "reference"),
    [
        (
            "0:1,100:3",
            {},
            lambda now, begun: min(1 + 2 * (now.decisions - begun.decisions) / 100, 3),
        ),
        ("0ep:1,50ep:3", {}, lambda now, begun: min(1 + (now.episodes - begun.episodes) / 25, 3)),
        (
            "0%:1,100%:3",
            {"decisions": 400, "episodes": 7},
            lambda now, begun: min(1 + (now.decisions - begun.decisions) / 200, 3),
        ),
        (
            "0%:1,50%:3",
            {"episodes": 200},
            lambda now, begun: min(1 + (now.episodes - begun.episodes) / 50, 3),
        ),
        ("2.5", {}, lambda now, begun: 2.5),
    ],
)
def test_a_schedule_placed_on_the_clock_of_the_run_counts_from_its_origin(
    given: str, length: dict[str, int], reference: Callable[[Moment, Moment], float]
) -> None:
    draw = random.Random(1)
    for _ in range(100):
        begun = Moment(draw.randrange(10**6), draw.random(), draw.randrange(10**4))
        placed = Schedule.read(given).shifted(begun, **length)
        for _ in range(20):
            now = Moment(
                begun.decisions + draw.randrange(600), 1.0, begun.episodes + draw.randrange(300)
            )
            assert placed.at(now) == pytest.approx(reference(now, begun))
        assert placed.at(Moment(0, 0.0)) == Schedule.read(given).values[0]
        assert Schedule.read(placed.plain()) == placed


def test_steps_stay_steps_where_they_are_placed() -> None:
    placed = Schedule.read("0:1,100:2 stepped").shifted(Moment(50, 0.5))
    assert [placed.at(Moment(at, 0.5)) for at in (149, 150)] == [1.0, 2.0]


def test_shares_of_a_stretch_without_an_end_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"percent .* need a phase that has an end"):
        Schedule.read("0%:1,100%:2").shifted(Moment(0, 0.0))


def test_learners_do_not_count_games() -> None:
    with pytest.raises(ConfigError, match=r"ppo.lr .* is by finished games"):
        PPOConfig(lr="0ep:1e-3,100ep:1e-4")  # type: ignore[arg-type]
    assert PPOConfig(lr="0ep:1e-3").lr.at(Moment(0, 0.0)) == 1e-3  # type: ignore[arg-type]
