"""What holds at a moment of a phase, against plain interpolation at random points."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from sparring.config import TrainConfig
from sparring.curriculum.curriculum import Curriculum
from sparring.schedule import Moment
from sparring.training.planning.plan import decide, resolve
from sparring.training.planning.settings import merged

SMALL: dict[str, Any] = {
    **{"game": "laser_hockey", "device": "cpu", "updates": 1, "opponents": ["weak=1", "self=2"]},
    "collect": {"games": 2, "steps": 8},
}
START = Moment(0, 0.0)


def made(*phases: dict[str, Any], **changes: Any) -> tuple[Curriculum, TrainConfig]:
    config = merged(TrainConfig(), {**SMALL, **changes, "phases": phases}, "test")
    return decide([config])[1][0], config


def points(draw: random.Random, most: int) -> tuple[list[int], list[float]]:
    places = sorted(draw.sample(range(most), draw.randrange(2, 6)))
    return places, [round(draw.uniform(0.1, 9), 3) for _ in places]


def word(places: list[int], values: list[float], unit: str = "") -> str:
    return ",".join(f"{at}{unit}:{value}" for at, value in zip(places, values, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_terms_at_random_moments_are_those_of_plain_interpolation(seed: int) -> None:
    draw = random.Random(seed)
    weak, goal, own = points(draw, 1000), points(draw, 90), points(draw, 5000)
    share = points(draw, 101)
    curriculum, config = made(
        {"name": "a", "decisions": 800},
        {
            **{"name": "b", "decisions": 1000},
            "opponents": {"weak": word(*weak), "strong": 1},
            "rewards": {"goal": word(*goal, unit="ep"), "direction": word(*share, unit="%")},
            "set": {"mode": "MIXTURE", "mixture": [1, word(*weak), 0.5]},
            "ppo": {"lr": word(*share, unit="%")},
        },
        {"name": "c"},
        rewards=[f"closeness={word(*own)}"],
    )
    for _ in range(50):
        began = Moment(draw.randrange(10**6), draw.random(), draw.randrange(10**5))
        gone, games = draw.randrange(1500), draw.randrange(120)
        now = Moment(began.decisions + gone, 0.9, began.episodes + games)
        met = {one.players[1]: one.weight for one in curriculum.lineups_at(1, began, now)}
        assert met == pytest.approx({"weak": np.interp(gone, *weak), "strong": 1})
        paid = curriculum.rewards_at(1, began, now)
        assert paid is not None
        wanted = {
            "goal": np.interp(games, *goal),
            "direction": np.interp(gone / 10, *share),
            "closeness": np.interp(now.decisions, *own),
            "touch": 0.0,
        }
        assert {part: weights[0] for part, weights in paid.items()} == pytest.approx(wanted)
        flags = curriculum.flags_at(1, began, now)
        assert flags["mixture"] == pytest.approx([1, np.interp(gone, *weak), 0.5])
        settings = curriculum.settings_at(1, began, "ppo", config.ppo, 0.1)
        assert settings.lr.at(now) == pytest.approx(0.1 * np.interp(gone / 10, *share))
        assert settings.gamma == config.ppo.gamma


def test_what_a_phase_does_not_name_is_as_the_run_has_it() -> None:
    curriculum, config = made(
        {"decisions": 10, "set": {"mode": "TRAIN_SHOOTING"}, "opponents": ["idle=1"]},
        {"decisions": 10, "rewards": {"touch": 1}, "ppo": {"lr": 0.5}},
        {"starts": ["usual=1"]},
        rewards=["goal=3"],
    )
    flags = [curriculum.flags_at(at, START, START) for at in range(3)]
    assert flags == [{"mode": "TRAIN_SHOOTING"}, {"mode": "NORMAL"}, {"mode": "NORMAL"}]
    met = [[one.players[1] for one in curriculum.lineups_at(at, START, START)] for at in range(3)]
    assert met == [["idle"], ["weak", 0], ["weak", 0]]
    paid = [curriculum.rewards_at(at, START, START) or {} for at in range(3)]
    assert [(one["goal"][0], one["touch"][0]) for one in paid] == [(3, 0), (3, 1), (3, 0)]
    assert curriculum.settings_at(2, START, "ppo", config.ppo) == config.ppo
    assert [curriculum.starts_of(at) for at in range(3)] == [(), (), ("usual=1",)]
    assert not any(curriculum.has_schedules(at) for at in range(3))


def test_a_phase_is_over_by_what_comes_first() -> None:
    curriculum, _ = made({"decisions": 100, "episodes": 7}, {"decisions": 5})
    began = Moment(1000, 0.1, 50)
    assert not curriculum.is_over(0, began, Moment(1099, 0.5, 56))
    assert curriculum.is_over(0, began, Moment(1100, 0.5, 51))
    assert curriculum.is_over(0, began, Moment(1001, 0.5, 57))
    assert not curriculum.is_over(1, began, Moment(10**9, 1.0, 10**9))  # the last one stays


def test_a_run_without_phases_is_plain_unless_something_is_scheduled() -> None:
    assert made()[0].is_constant
    assert made(rewards=["goal=3"])[0].is_constant
    assert not made(rewards=["goal=0:3,10:1"])[0].is_constant
    assert not made(opponents=["weak=0:1,5:2"])[0].is_constant


def test_line_ups_come_and_go_with_their_weight() -> None:
    curriculum, _ = made(opponents=["weak=0:1,10:0 stepped", "strong=0:0,10:1 stepped"])
    met = [
        [one.players[1] for one in curriculum.lineups_at(0, START, Moment(at, 0.0))]
        for at in (0, 9, 10, 99)
    ]
    assert met == [["weak"], ["weak"], ["strong"], ["strong"]]


def test_whoever_plays_in_any_phase_is_cast_once() -> None:
    phases = [
        {"decisions": 5, "opponents": ["past=1", "weak=1"]},
        {"decisions": 5, "opponents": ["past:3=1"]},
        {"opponents": ["self=1", "past=1"]},
    ]
    config = merged(TrainConfig(), {**SMALL, "phases": phases}, "test")
    cast = resolve([config]).participants
    assert cast.mixes == ("past", "past:3")
    assert cast.recent == (3,)
    assert [len(seats) for seats in cast.seatings] == [2, 1, 2]
    assert [one.players[1] for one in cast.lineups] == [
        one.lineup.players[1] for one in cast.seatings[0]
    ]


def test_roles_are_paid_apart_from_the_beginning_if_any_phase_does() -> None:
    base: dict[str, Any] = {"device": "cpu", "collect": {"games": 2, "steps": 8}}
    phases = [json.dumps({"decisions": 5}), json.dumps({"rewards": {"worker.rank": 1}})]
    plan = resolve([merged(TrainConfig(), {**base, "phases": phases}, "test")])
    assert plan.by_role
    assert not resolve([merged(TrainConfig(), {**base, "phases": phases[:1]}, "test")]).by_role
