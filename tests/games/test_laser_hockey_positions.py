"""Positions of laser hockey: symmetry, setting and reading, what is refused, the text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparring.errors import ConfigError
from sparring.games import laser_hockey
from sparring.games.laser_hockey import HockeyPosition, RigidBody, load_position, read, set_position


def random_position(rng: np.random.Generator) -> HockeyPosition:
    def racket(side: int) -> RigidBody:
        x, y, angle = rng.uniform(0.6, 3.4), rng.uniform(-2.5, 2.5), rng.uniform(-0.9, 0.9)
        return RigidBody(side * x, y, angle, *rng.uniform(-6, 6, 3))

    puck = RigidBody(*rng.uniform((-3.5, -3.0), (3.5, 3.0)), 0.0, *rng.uniform(-20, 20, 3))
    return HockeyPosition(racket(-1), racket(1), puck)


def turned(position: HockeyPosition) -> HockeyPosition:
    """Half a turn, players exchanged."""

    def turn(body: RigidBody) -> RigidBody:
        return RigidBody(-body.x, -body.y, body.angle, -body.vx, -body.vy, body.spin)

    return replace(
        position,
        left=turn(position.right),
        right=turn(position.left),
        puck=turn(position.puck),
        keep=position.keep[::-1],
    )


def flipped(position: HockeyPosition) -> HockeyPosition:
    """Top and bottom exchanged."""

    def flip(body: RigidBody) -> RigidBody:
        return RigidBody(body.x, -body.y, -body.angle, body.vx, -body.vy, -body.spin)

    return replace(
        position, left=flip(position.left), right=flip(position.right), puck=flip(position.puck)
    )


def final_errors(kind: str) -> np.ndarray:
    """How far 20 random steps and their image end apart, for 300 random positions."""
    rng = np.random.default_rng(5)
    errors = []
    for _ in range(300):
        position = random_position(rng)
        one = load_position(position)
        image = turned(position) if kind == "turn" else flipped(position)
        other = load_position(image)
        for _ in range(20):
            actions = rng.uniform(-1, 1, (2, 4)).astype(np.float32)
            one.apply(actions)
            if kind == "turn":
                other.apply(actions[::-1].copy())
            else:
                other.apply(laser_hockey.mirrored_action(actions))
            if one.over or other.over:
                break
        seen = one.observe(0)
        again = other.observe(1) if kind == "turn" else laser_hockey.mirrored(other.observe(0))
        errors.append(np.abs(seen - again)[:16].max())
    return np.array(errors)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["turn", "flip"])
def test_both_players_and_both_hands_are_alike(kind: str) -> None:
    errors = final_errors(kind)
    assert np.median(errors) <= 1e-4
    assert np.quantile(errors, 0.9) <= 1e-2


def test_a_position_can_be_set_and_read() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        position = replace(
            random_position(rng), keep=(7, 0), time=33, mode="TRAIN_DEFENSE", touching=1, server=1
        )
        back = read(load_position(position))
        for body, wanted in zip(
            (back.left, back.right, back.puck),
            (position.left, position.right, position.puck),
            strict=True,
        ):
            np.testing.assert_allclose(body.numbers, wanted.numbers, rtol=0, atol=2e-6)
        same = replace(back, left=position.left, right=position.right, puck=position.puck)
        assert same == position


BAD_POSITIONS = {
    "keep counter must be": HockeyPosition(keep=(1, 0)),
    "number 2 is not within": HockeyPosition(left=RigidBody(angle=float("nan"))),
    "number 12 is not within": HockeyPosition(puck=RigidBody(x=float("inf"))),
    "mode='FAST' is unknown": HockeyPosition(mode="FAST"),
    "time is past": HockeyPosition(time=251),
    "touching must be": HockeyPosition(touching=16),
    "server must be": HockeyPosition(server=2),
}


@pytest.mark.parametrize("message", BAD_POSITIONS)
def test_bad_positions_are_refused_and_change_nothing(message: str) -> None:
    state = load_position(HockeyPosition())
    before = state.serialize()
    with pytest.raises(ConfigError, match=message):
        set_position(state, BAD_POSITIONS[message])
    assert state.serialize() == before


def test_a_kept_puck_needs_keep_mode() -> None:
    with pytest.raises(ConfigError, match="needs keep_mode"):
        load_position(HockeyPosition(keep=(5, 0)), config={"keep_mode": 0})


def test_the_rink_as_text() -> None:
    state = load_position(HockeyPosition(puck=RigidBody(x=1.0, y=1.0), keep=(0, 4), time=9))
    lines = str(state).splitlines()
    assert lines[0] == "NORMAL, step 9 of 251; seat 1 keeps the puck, 4 left"
    assert sum(line.count("o") for line in lines[1:18]) == 1
    assert sum(line.count("]") for line in lines[1:18]) == 1
