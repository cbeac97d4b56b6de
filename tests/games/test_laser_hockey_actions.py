"""Actions of laser hockey: discrete ones mean what they say, wrong ones are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparring
from sparring import Pool, Rules
from sparring.errors import IllegalActionError
from sparring.games import laser_hockey
from sparring.games.laser_hockey import HockeyPosition, load_position


def test_discrete_actions_mirror() -> None:
    rules = Rules("laser_hockey_discrete", {"fineness": 4})
    swap = {"left": "right", "right": "left", "turn clockwise": "turn counter-clockwise"}
    swap["turn counter-clockwise"] = "turn clockwise"
    for action in range(rules.actions):
        name, _, level = rules.action_name(action).rpartition(" ")
        other = laser_hockey.mirrored_discrete(action, fineness=4)
        assert laser_hockey.mirrored_discrete(other, fineness=4) == action
        if name:
            assert rules.action_name(other) == f"{swap.get(name, name)} {level}"
        else:
            assert other == action  # nothing and the shot


@pytest.mark.parametrize(
    ("action", "wish"),
    list(
        enumerate(
            [
                [0, 0, 0, 0],
                [-1, 0, 0, 0],
                [1, 0, 0, 0],
                [0, -1, 0, 0],
                [0, 1, 0, 0],
                [0, 0, -1, 0],
                [0, 0, 1, 0],
                [0, 0, 0, 1],
            ]
        )
    ),
)
def test_discrete_actions_are_continuous_ones(action: int, wish: list[float]) -> None:
    """Section 9, for both seats, with and without a puck to shoot."""
    for keep in ((0, 0), (9, 0), (0, 9)):
        position = HockeyPosition(keep=keep)
        one = load_position(position, game="laser_hockey_discrete")
        other = load_position(position)
        one.apply([action, action])
        other.apply(np.array([wish, wish], np.float32))
        for seat in (0, 1):
            np.testing.assert_array_equal(one.observe(seat), other.observe(seat))


def test_finer_discrete_actions() -> None:
    """Section 9: k strengths for each direction; three of them here."""
    rules = Rules("laser_hockey_discrete", {"fineness": 4})
    assert rules.actions == 1 + 6 * 3 + 1
    assert Rules("laser_hockey_discrete", {"fineness": 3}).actions == 14
    assert Rules("laser_hockey_discrete", {"fineness": 3, "keep_mode": 0}).actions == 13
    assert Rules("laser_hockey_discrete").actions == 8
    state = load_position(HockeyPosition(), config={"fineness": 4}, game="laser_hockey_discrete")
    state.apply([1 + 1 * 3 + 1, 0])  # forward with 2/3
    other = load_position(HockeyPosition())
    other.apply(np.array([[2 / 3, 0, 0, 0], [0, 0, 0, 0]], np.float32))
    np.testing.assert_array_equal(state.observe(0), other.observe(0))
    assert rules.action_name(1 + 3 + 1) == "forward 2/3"
    assert rules.action_name(19) == "shoot"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_refuse_the_step(value: float) -> None:
    pool = Pool("laser_hockey", 3)
    pool.reset()
    before = pool.digest()
    actions = np.zeros((6, 4), np.float32)
    actions[3, 2] = value
    with pytest.raises(IllegalActionError, match=r"game 1, seat 1 .*component 2 .*finite"):
        pool.step(actions)
    assert pool.digest() == before


def test_numbers_out_of_range_are_clipped() -> None:
    one, other = load_position(HockeyPosition()), load_position(HockeyPosition())
    one.apply(np.array([[3, -7, 1.5, 0], [-2, 0, 0, 0]], np.float32))
    other.apply(np.array([[1, -1, 1, 0], [-1, 0, 0, 0]], np.float32))
    np.testing.assert_array_equal(one.observe(0), other.observe(0))


@pytest.mark.parametrize(
    ("game", "actions"),
    [
        ("laser_hockey", np.zeros((2, 3))),
        ("laser_hockey", np.zeros(4)),
        ("laser_hockey_discrete", [0, 8]),
        ("laser_hockey_discrete", [0, -1]),
        ("laser_hockey_discrete", [0.0, 1.0]),
        ("laser_hockey_discrete", [0]),
    ],
)
def test_wrong_actions_are_refused(game: str, actions: Any) -> None:
    state = sparring.new_state(game)
    before = state.serialize()
    with pytest.raises(IllegalActionError):
        state.apply(actions)
    assert state.serialize() == before
