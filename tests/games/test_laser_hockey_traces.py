"""The native game against recorded matches of the original."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sparring
from sparring.games.laser_hockey import HockeyPosition, RigidBody, load_position, set_position
from vectors.laser_hockey import Trace, data, traces

PARITY = {"clear_keep_on_reset": 0, "safe_spawn": 0, "timeout_as_terminated": 1}
BODIES = slice(0, 16)


def new_match(trace: Trace, **config: object) -> sparring.State:
    return load_position(trace.start, config={"keep_mode": int(trace.keep), **PARITY, **config})


def step_errors(trace: Trace) -> np.ndarray:
    """The largest error of each step, when every step starts where the original stood."""
    state = new_match(trace)
    errors = []
    for step in range(trace.steps):
        set_position(state, trace.position_before(step))
        state.apply(trace.actions[step])
        errors.append(np.abs(state.observe(0)[BODIES] - trace.obs[step, BODIES]).max())
    return np.array(errors)


def test_every_recorded_step_is_repeated() -> None:
    errors = np.concatenate([step_errors(trace) for trace in traces()])
    assert len(errors) == 3366
    assert errors.max() <= 1e-3
    assert np.quantile(errors, 0.99) <= 5e-5
    assert np.median(errors) <= 1e-6


@pytest.mark.parametrize("trace", traces(), ids=lambda trace: trace.name)
def test_a_match_stays_with_the_recorded_one(trace: Trace) -> None:
    state = new_match(trace)
    horizon = trace.raw["validated_horizon"]["1e-3"]
    whole = horizon == trace.steps
    for step in range(horizon):
        assert not state.over, f"over before step {step}"
        state.apply(trace.actions[step])
        seen = state.observe(0)
        np.testing.assert_allclose(
            seen[BODIES], trace.obs[step, BODIES], rtol=0, atol=1e-2, err_msg=f"step {step}"
        )
        if whole:
            np.testing.assert_allclose(state.rewards, trace.reward[step], rtol=0, atol=1e-3)
            if trace.keep:
                assert seen[16:18].tolist() == trace.obs[step, 16:18].tolist()
    if whole:
        assert state.terminated == trace.raw["done_last"]
        assert state.scores == [trace.raw["winner"], -trace.raw["winner"]]
        other = np.array(trace.raw["final_obs_agent_two"])[BODIES]
        np.testing.assert_allclose(state.observe(1)[BODIES], other, rtol=0, atol=1e-2)


@pytest.mark.parametrize(
    ("part", "recorded"),
    [("closeness", "closeness"), ("touch", "touch"), ("direction", "puck_direction")],
)
def test_reward_terms_are_the_recorded_ones(part: str, recorded: str) -> None:
    """For matches that can be followed to their end."""
    compared = 0
    for trace in traces():
        if trace.raw["validated_horizon"]["1e-3"] < trace.steps:
            continue
        state = sparring.new_state(
            "laser_hockey", config={"keep_mode": int(trace.keep), **PARITY}, rewards={part: 1.0}
        )
        set_position(state, trace.start)
        for step in range(trace.steps):
            state.apply(trace.actions[step])
            assert state.rewards[0] == pytest.approx(trace.raw[recorded][step], abs=1e-3)
            compared += 1
    assert compared > 1500


def test_the_scripted_players_answer_as_recorded() -> None:
    """Positions are set within 5e-7 m, which gains of 10 and 2 make 5e-6 and 2e-6."""
    for vector in data()["policy"]:
        own, other, puck = vector["obs"][0:6], vector["obs"][6:12], vector["obs"][12:16]
        position = HockeyPosition(
            RigidBody(*own),
            RigidBody(*other),
            RigidBody(puck[0], puck[1], 0.0, puck[2], puck[3]),
            keep=(int(vector["obs"][16]), int(vector["obs"][17])),
            phase=(vector["phase"], 0.0),
        )
        bot = "weak" if vector["weak"] else "strong"
        allowed = [5e-6, 2e-6, 1e-6, 0.0]
        error = np.abs(load_position(position).ask(bot, 0) - vector["action"])
        assert (error <= allowed).all(), error
        turned = replace(  # the right player does the same from his side
            position,
            left=turn(position.right),
            right=turn(position.left),
            puck=turn(position.puck),
            keep=position.keep[::-1],
            phase=position.phase[::-1],
        )
        error = np.abs(load_position(turned).ask(bot, 1) - vector["action"])
        assert (error <= allowed).all(), error


def turn(body: RigidBody) -> RigidBody:
    return RigidBody(-body.x, -body.y, body.angle, -body.vx, -body.vy, body.spin)


def test_constants_show_in_what_they_do() -> None:
    """Masses, inertia and damping (section 3.2) from the speeds that one step gives."""
    state = load_position(HockeyPosition())
    state.apply(np.array([[1, 0, 1, 0], [0, 0, 0, 0]], np.float32))
    seen = state.observe(0)
    assert seen[3] == pytest.approx(6000 / 58.0 * 0.02 * 0.9, rel=1e-5)
    assert seen[5] == pytest.approx(400 / 3.7094955 * 0.02 * 0.96, rel=1e-5)
    # The center of mass moves; the origin, 0.1223755 in front of it, also turns around it.
    angle = seen[5] * 0.02
    center = -3 - 0.1223755 + seen[3] * 0.02
    assert seen[0] == pytest.approx(center + 0.1223755 * np.cos(angle), abs=1e-6)
    assert seen[1] == pytest.approx(0.1223755 * np.sin(angle), abs=1e-6)
    state = load_position(HockeyPosition(puck=RigidBody(vx=10.0)))
    state.apply(np.zeros((2, 4), np.float32))
    assert state.observe(0)[14] == pytest.approx(10 * 0.999, rel=1e-6)
    state = load_position(HockeyPosition(puck=RigidBody(vx=30.0)))
    state.apply(np.zeros((2, 4), np.float32))
    assert state.observe(0)[14] == pytest.approx(30 * 0.8, rel=1e-6)
