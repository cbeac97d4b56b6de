"""A run on its way through its phases: what holds when, and when a phase is over."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from curriculum.course_helpers import (
    SKULL_KING,
    Reference,
    along,
    moments,
    read,
    seatings,
    three_phases,
)
from pools.foreign_envs import Countdown
from sparring.config import PPOConfig
from sparring.curriculum.curriculum import Curriculum
from sparring.curriculum.phases import Phase, Threshold
from sparring.curriculum.state import CurriculumState
from sparring.curriculum.timeline import curriculum_metrics
from sparring.learn.learner import Overrides, apply_game_overrides
from sparring.learn.plan import Seating
from sparring.pools import LEARNER, Lineup, Pool
from sparring.pools.custom import pool_of
from sparring.schedule import Moment


def test_at_1000_points_a_pool_has_what_the_schedules_say() -> None:
    course, reference = CurriculumState(three_phases()), Reference()
    pool, plain = (Pool(SKULL_KING, 1, threads=1) for _ in range(2))
    apply_game_overrides(pool, course.begin())
    reference.apply(plain, Moment(0, 0.0))
    setting, wanted = (one._native.setting.view(np.int64) for one in (pool, plain))
    numbers = setting == wanted  # the others are addresses
    assert (~numbers).sum() < 4
    handed = 0
    for update, now in enumerate(moments(1000, 3)):
        course.advance(now, update)
        reference.go(now)
        overrides = course.overrides(now)
        if overrides is not None:
            handed += 1
            apply_game_overrides(pool, overrides)
        reference.apply(plain, now)
        setting, wanted = (one._native.setting.view(np.int64) for one in (pool, plain))
        np.testing.assert_array_equal(setting[numbers], wanted[numbers])
    assert course.index == reference.phase == 2
    assert handed > 600


def test_at_1000_points_a_foreign_env_has_what_the_schedules_say() -> None:
    env = SyncVectorEnv([Countdown] * 2)
    pool = pool_of(env)
    first = Phase("first", decisions=9000, rewards={"reward": read("0:1,9000:0.5")})
    second = Phase("second", rewards={"reward": read("0:3,5000:1")}, flags={"limit": read("7")})
    alone = (Seating(Lineup((LEARNER,)), read("1")),)
    course = CurriculumState(Curriculum(pool.rules, (first, second), (alone, alone)))
    for update, now in enumerate(moments(1000, 4)):
        course.advance(now, update)
        overrides = course.overrides(now)
        if overrides is not None:
            apply_game_overrides(pool, overrides)
        gone = now.decisions - course.origin.decisions
        wanted = [(0, 3), (5000, 1)] if course.index else [(0, 1), (9000, 0.5)]
        assert pool._weight == pytest.approx(along(wanted, gone), rel=1e-6)
    assert course.index == 1
    assert env.get_attr("limit") == (7, 7)


def test_only_what_differs_is_handed_out() -> None:
    settings = PPOConfig()
    course = CurriculumState(three_phases(), algo="ppo", settings=settings, lr_factor=0.1)
    begun = course.begin()
    assert begun.settings is None
    assert begun.lineups is not None
    first = course.overrides(Moment(0, 0.0))
    assert first is not None
    assert (first.lineups, first.rewards, first.flags, first.starts) == (None,) * 4
    assert first.settings.lr.at(Moment(2500, 0.5)) == pytest.approx(0.55e-4)
    assert course.overrides(Moment(0, 0.0)) is None
    change = course.advance(Moment(5100, 0.1, 20), 7)
    assert change is not None
    assert change == {"phase": 2, "name": "second", "why": "decisions"}
    second = course.overrides(Moment(5100, 0.1, 20))
    assert second is not None
    assert second.settings == settings
    assert second.clear_replay
    again = course.overrides(Moment(5150, 0.1, 21))
    assert again is not None
    assert again == Overrides(flags=again.flags, rewards=again.rewards), "no line-ups, no settings"
    last = course.advance(Moment(9000, 0.4, 320), 30)
    assert last is not None
    assert last["why"] == "episodes"
    assert course.advance(Moment(10**9, 1.0, 10**6), 99) is None


def test_a_restored_course_goes_on_like_the_one_that_was_saved() -> None:
    draw = np.random.default_rng(6)
    for stop in draw.integers(1, 400, size=5):
        course = CurriculumState(three_phases(), algo="ppo", settings=PPOConfig())
        course.begin()
        every = moments(500, int(stop))
        for update, now in enumerate(every[:stop]):
            course.advance(now, update)
            course.overrides(now)
        again = CurriculumState(three_phases(), algo="ppo", settings=PPOConfig())
        overrides = again.restore(json.loads(json.dumps(course.state())))
        assert again.current == course.current
        assert overrides.lineups == course.current["lineups"]
        assert not overrides.clear_replay
        for update, now in enumerate(every[stop:], start=int(stop)):
            assert again.advance(now, update) == course.advance(now, update)
            assert again.overrides(now) == course.overrides(now)
        assert again.state() == course.state()


def found(low: float, score_low: float | None = 0.0, parity: float = 0.25) -> dict[str, Any]:
    return {"low": low, "win": low + 0.1, "score_low": score_low, "parity": parity}


def until(**threshold: Any) -> CurriculumState:
    phases = (Phase("up", decisions=1000, until=Threshold(**threshold)), Phase("on"))
    return CurriculumState(Curriculum(SKULL_KING, phases, (seatings(alone="1"),) * 2))


def test_a_threshold_is_reached_by_what_is_sure_of_checkpoints_of_its_phase() -> None:
    course = until(value=0.4)
    course.record_evaluation(0, {"captain": found(0.9)})
    assert course.advance(Moment(10, 0.1), 1) is None, "the phase had not begun then"
    course.record_evaluation(1, {"random": found(0.9), "captain": found(0.39)})
    assert course.advance(Moment(20, 0.1), 2) is None, "the hardest decides"
    assert "lower bound now 0.39" in course.progress(Moment(20, 0.1)).until
    course.record_evaluation(2, {"random": found(0.9), "captain": found(0.41)})
    change = course.advance(Moment(30, 0.2), 4)
    assert change is not None
    assert change["why"] == "threshold"
    assert change.items() >= {"checkpoint": 2, "low": 0.41, "wanted": 0.4}.items()
    assert (course.update, course.origin.decisions) == (4, 30)
    course.record_evaluation(9, {"captain": found(0.99)})
    assert course.advance(Moment(40, 0.3), 9) is None, "the last phase stays"


def test_a_threshold_by_score_or_against_a_bot() -> None:
    course = until(value=12.0, score=True, against="captain")
    course.record_evaluation(1, {"random": found(0.9, 50.0)})
    course.record_evaluation(2, {"captain": found(0.9, None), "random": found(0.1)})
    assert course.last is None, "it was not measured"
    course.record_evaluation(3, {"captain": found(0.0, 12.5), "random": found(0.0, 0.0)})
    assert course.reached == {"checkpoint": 3, "low": 12.5, "wanted": 12.0}
    alone = until(value=5.0)
    alone.record_evaluation(1, {"alone": found(1.0, 4.0, parity=1.0)})
    assert alone.reached is None, "one seat alone is told by its score"


def test_decisions_are_the_fallback() -> None:
    course = until(value=0.9)
    course.record_evaluation(1, {"captain": found(0.3)})
    change = course.advance(Moment(1000, 0.5), 20)
    assert change is not None
    assert change["why"] == "fallback"
    assert change["low"] == 0.3


def test_curves_show_the_phase_and_what_changes() -> None:
    course = CurriculumState(three_phases())
    course.begin()
    course.overrides(Moment(3000, 0.1))
    shown = curriculum_metrics(course)
    assert shown["charts/phase"] == 1.0
    assert shown["curriculum/opponents/captain"] == pytest.approx(2 / 3)
    assert shown["curriculum/reward/score_delta"] == pytest.approx(0.4)
    assert shown["curriculum/reward/manager.win"] == 2.0
    course.advance(Moment(5000, 0.2), 5)
    course.overrides(Moment(5000, 0.2))
    shown = curriculum_metrics(course)
    assert shown["charts/phase"] == 2.0
    assert shown["curriculum/opponents/self"] == 0.0
    assert shown["curriculum/flag/round_weights[0]"] == 1.0


def test_standing_says_how_far_and_what_comes_next() -> None:
    course = CurriculumState(three_phases())
    standing = course.progress(Moment(2500, 0.1))
    assert (standing.name, standing.phase, standing.num_phases) == ("first", 1, 3)
    assert (standing.fraction, standing.until) == (0.5, "5,000 decisions")
    assert standing.next_phase == "second"
    course.advance(Moment(5000, 0.2), 5)
    course.advance(Moment(6000, 0.2, 900), 6)
    standing = course.progress(Moment(6000, 0.2, 900))
    assert (standing.fraction, standing.until, standing.next_phase) == (None, "", "")
