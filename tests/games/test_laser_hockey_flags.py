"""Rewards and flags of laser hockey: time limits, kept pucks, serves, modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparring
from sparring import Lineup, Pool, Rules
from sparring.errors import ConfigError
from sparring.games.laser_hockey import HockeyPosition, RigidBody, load_position, read

NOTHING = np.zeros((2, 4), np.float32)


def test_the_original_reward_is_the_default() -> None:
    state = load_position(
        HockeyPosition(puck=RigidBody(x=3.6, vx=40.0), right=RigidBody(x=3.0, y=-2.0))
    )
    goals = 0.0
    while not state.over:
        state.apply(NOTHING)
        goals += state.rewards[0]
    assert state.end == "goal" and state.terminated and not state.truncated
    assert goals == pytest.approx(10.0)
    state = load_position(HockeyPosition(puck=RigidBody(x=-2.0), left=RigidBody(x=-3.0)))
    state.apply(NOTHING)
    assert state.rewards.tolist() == pytest.approx([-0.0576, 0.0])
    train = load_position(HockeyPosition(puck=RigidBody(x=-2.0), mode="TRAIN_SHOOTING"))
    train.apply(NOTHING)
    assert train.rewards.tolist() == pytest.approx([-0.18, 0.0])


def test_rewards_can_be_weighted() -> None:
    pool = Pool("laser_hockey", 64, rewards={"direction": 1.0})
    pool.reset()
    for _ in range(100):
        batch = pool.step(pool.sample_actions())
        assert batch.reward.sum(axis=1) == pytest.approx(0, abs=1e-6)  # one's gain, other's loss
    assert np.abs(batch.reward).max() > 0


@pytest.mark.parametrize(("mode", "length"), [("NORMAL", 251), ("TRAIN_SHOOTING", 81)])
def test_the_time_limit_cuts_or_ends(mode: str, length: int) -> None:
    for flag in (0, 1):
        config = {"mode": mode, "timeout_as_terminated": flag}
        state = sparring.new_state("laser_hockey", config=config)
        steps = 0
        while not state.over:
            state.apply(NOTHING)
            steps += 1
        assert steps == length
        assert (state.terminated, state.truncated) == (bool(flag), not flag)
        assert state.end == "time limit" and state.scores == [0.0, 0.0]


def test_a_shot_is_released_at_once_or_after_fourteen_steps() -> None:
    """Section 6.3: the counter is seen as 15, 14, ..., 2, 0."""
    state = load_position(HockeyPosition(left=RigidBody(x=-2.0), puck=RigidBody(x=-1.6, vx=-5.0)))
    counts = []
    while len(counts) < 30 and not (counts and counts[-1] == 0 and 15 in counts):
        state.apply(NOTHING)
        counts.append(int(state.observe(0)[16]))
    first = counts.index(15)
    assert counts[first:] == [*range(15, 1, -1), 0]
    assert state.observe(0)[14] == pytest.approx(60 * 0.999, rel=0.02)
    shot = load_position(
        HockeyPosition(left=RigidBody(x=-2.0), puck=RigidBody(x=-1.6), keep=(15, 0))
    )
    shot.apply(np.array([[0, 0, 0, 0.5], [0, 0, 0, 0]], np.float32))
    assert shot.observe(0)[16] == 14  # 0.5 is not yet a shot
    shot.apply(np.array([[0, 0, 0, 0.51], [0, 0, 0, 0]], np.float32))
    assert shot.observe(0)[16] == 0
    assert shot.observe(0)[14] > 50


def keep_counts(config: dict[str, Any]) -> list[int]:
    """Keep counters right after a restart, over many matches of strong players."""
    pool = Pool("laser_hockey", 64, config=config, lineups=[Lineup(("strong", "weak"))])
    pool.reset()
    found: list[int] = []
    for _ in range(1200):
        batch = pool.step(np.zeros((128, 4), np.float32))
        fresh = batch.obs.view(np.float32)[:, 16:18].reshape(64, 2, 2)[batch.final_game]
        found += fresh.astype(int).ravel().tolist()
    return found


def test_kept_pucks_survive_a_reset_only_on_request() -> None:
    assert set(keep_counts({})) == {0}
    assert len(set(keep_counts({"clear_keep_on_reset": 0}))) > 3


def test_without_keep_mode_nothing_is_kept() -> None:
    pool = Pool("laser_hockey", 64, config={"keep_mode": 0}, lineups=[Lineup(("strong", "strong"))])
    pool.reset()
    for _ in range(300):
        pool.step(np.zeros((128, 4), np.float32))
    assert pool.audit() == ""


def spawns(config: dict[str, Any]) -> np.ndarray:
    pool = Pool("laser_hockey", 2000, config={"mode": "TRAIN_SHOOTING", **config})
    return pool.reset().obs.view(np.float32)[::2, 6].copy()


def test_rackets_start_inside_walls_only_on_request() -> None:
    assert spawns({}).max() == pytest.approx(3.4)
    assert spawns({"safe_spawn": 0}).max() > 4.5
    assert spawns({}).min() < -0.2


def first_pucks(serve: str, resets: int) -> np.ndarray:
    """Which half the puck lies in, [resets, games]: True for the right one."""
    pool = Pool("laser_hockey", 400, config={"serve": serve})
    return np.array([pool.reset().obs.view(np.float32)[::2, 12] > 0 for _ in range(resets)])


def test_serves() -> None:
    assert not first_pucks("LEFT", 2).any()
    assert first_pucks("RIGHT", 2).all()
    alternating = first_pucks("ALTERNATING", 4)
    assert alternating[0].all() and alternating[2].all()  # as in the original, the right one first
    assert not alternating[1].any() and not alternating[3].any()
    drawn = first_pucks("DRAWN", 4)
    assert 0.45 < drawn.mean() < 0.55
    assert 0.4 < (drawn[0] != drawn[1]).mean() < 0.6


def test_modes_are_drawn_by_weight_and_can_change() -> None:
    config = {"mode": "MIXTURE", "mixture": [1, 0, 3]}
    modes = [
        read(sparring.new_state("laser_hockey", seed=seed, config=config)).mode
        for seed in range(400)
    ]
    assert set(modes) == {"NORMAL", "TRAIN_DEFENSE"}
    assert modes.count("NORMAL") / 400 == pytest.approx(0.25, abs=0.08)
    pool = Pool("laser_hockey", 50, config={"mode": "NORMAL"})
    pool.reset()
    pool.set_config(mode="TRAIN_SHOOTING")
    batch = pool.reset()
    assert (batch.obs.view(np.float32)[::2, 12] < 0).all()
    with pytest.raises(ConfigError, match="keep_mode cannot change"):
        pool.set_config(keep_mode=0)


def test_scaled_observations() -> None:
    """Section 8: the divisors that the original suggests."""
    divisors = [1, 1, 0.5, 4, 4, 4, 1, 1, 0.5, 4, 4, 4, 2, 2, 10, 10, 4, 4]
    rules = Rules("laser_hockey", {"scale_observation": 1})
    assert [feature.divisor for feature in rules.features] == divisors
    plain = load_position(HockeyPosition(puck=RigidBody(x=1.0, vx=5.0)))
    scaled = load_position(
        HockeyPosition(puck=RigidBody(x=1.0, vx=5.0)), config={"scale_observation": 1}
    )
    np.testing.assert_allclose(scaled.observe(0), plain.observe(0) / divisors)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"mode": "TRAIN"}, "mode='TRAIN' is unknown"),
        ({"mode": 4}, "mode=4 is outside"),
        ({"mode": None}, "mode=None is not a number"),
        ({"mixture": [0, 0, 0]}, "mixture needs at least one weight"),
        ({"mixture": [-1, 0, 0]}, "mixture=-1 is outside"),
        ({"keep": 1}, "keep_mode"),
        ({"fineness": 3}, "no flag 'fineness'"),
    ],
)
def test_wrong_flags_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Rules("laser_hockey", config)
