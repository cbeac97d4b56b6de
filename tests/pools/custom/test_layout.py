"""How observations of somebody's environments lie in rows: as bytes or floats, with names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

import own_envs
from sparring import SparringError
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.pools.custom import CustomRules, make_pool, pool_of
from sparring.pools.custom.encoding import encoding_of
from sparring.pools.custom.rules import rules_for

CHOICE = spaces.Discrete(2)
SPACES: list[Any] = [
    spaces.Box(-1, 1, (3,), np.float32),
    spaces.Box(0, 255, (2, 3), np.uint8),
    spaces.Box(0, 3, (4,), np.int64),
    spaces.Box(-3, 3, (2,), np.int8),
    spaces.Discrete(5, start=2),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiBinary(4),
]


def rules_of(space: Any, names: tuple[str, ...] = ()) -> CustomRules:
    return rules_for(
        "env",
        encoding_of(space, CHOICE, "env", SimpleNamespace(feature_names=names)),
        seats=1,
        rows=1,
    )


class Fixed(gymnasium.Env[Any, Any]):
    """Shows what it is told to."""

    action_space = CHOICE

    def __init__(self, space: Any, shown: Any) -> None:
        self.observation_space, self.shown = space, shown

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.shown, {}

    def step(self, action: Any) -> Any:
        return self.shown, 0.0, False, False, {}


@given(st.lists(st.sampled_from(range(len(SPACES))), min_size=1, max_size=4), st.integers(0, 99))
def test_a_network_sees_what_gymnasium_flattens(chosen: list[int], seed: int) -> None:
    space = spaces.Dict({f"part{i}": SPACES[kind] for i, kind in enumerate(chosen)})
    space.seed(seed)
    obs, rules = space.sample(), rules_of(space)
    flat = spaces.flatten(space, obs).astype(np.float32)
    divisors = np.array([feature.divisor for feature in rules.features])
    assert np.allclose(rules.widen(rules.pack(flat)) * divisors, flat, atol=1e-5)
    assert CustomRules(**rules.plain()).features == rules.features
    assert np.array_equal(pool_of(Fixed(space, obs)).reset().obs[0], rules.pack(flat))


def test_whole_numbers_take_a_byte_each_and_pixels_are_divided() -> None:
    picture = rules_of(spaces.Box(0, 255, (84, 84), np.uint8))
    assert picture.obs_bytes == 84 * 84
    assert {feature.divisor for feature in picture.features} == {255.0}
    assert rules_of(spaces.Box(0, 1, (84, 84), np.float32)).obs_bytes == 4 * 84 * 84
    assert {feature.divisor for feature in rules_of(SPACES[2]).features} == {1.0}
    assert rules_of(SPACES[3]).features[0].dtype == "float32"


def test_numbers_are_called_by_their_keys() -> None:
    rules = make_pool("own_envs:make_cards", 1).rules
    assert [block.name for block in rules.blocks] == ["hand", "open", "won"]
    assert [rules.features[i].name for i in (3, 12, 24)] == ["hand[3]", "open[0]", "won[0]"]
    nested = spaces.Dict({"me": spaces.Dict({"x": CHOICE}), "all": spaces.Tuple([CHOICE, CHOICE])})
    assert [block.name for block in rules_of(nested).blocks] == ["all.0", "all.1", "me.x"]
    assert [block.name for block in rules_of(spaces.Tuple([CHOICE])).blocks] == ["obs.0"]
    assert rules_of(SPACES[0]).features[2].name == "obs[2]"


def test_an_env_may_say_what_its_numbers_are_called() -> None:
    class Named(own_envs.Walk):
        feature_names = ("place", "speed", "age", "one")

    vector = gymnasium.vector.SyncVectorEnv([Named])
    for rules in (make_pool(Named, 1).rules, pool_of(vector).rules):
        assert [feature.name for feature in rules.features] == list(Named.feature_names)
        assert CustomRules(**rules.plain()).features == rules.features
    with pytest.raises(ConfigError, match=r"feature_names has 2 names.*has 3 numbers"):
        rules_of(SPACES[0], ("a", "b"))


@pytest.mark.parametrize("wrong", [256, -1, 0.5, np.nan])
def test_what_is_no_byte_is_refused(wrong: float) -> None:
    env = Fixed(spaces.Box(0, 200, (2,), np.uint8), np.array([0, wrong]))
    with pytest.raises(SparringError, match=r"obs\[1\]|observation\[1\]"):
        pool_of(env).reset()


def test_a_network_can_be_told_which_parts_to_see() -> None:
    rules = make_pool("own_envs:make_cards", 1).rules
    policy = Policy(rules, Perceptron(rules, NetConfig(hidden=(8,), inputs=("hand",))))
    seen = np.zeros((2, rules.numbers), np.float32)
    seen[1, 12:] = 1  # all but the hand
    first, second = policy.probabilities(rules.pack(seen), np.ones((2, 12), np.uint8))
    assert np.array_equal(first, second)


def test_what_older_checkpoints_say_is_read() -> None:
    rules = CustomRules("old", seats=1, rows=1, actions=2, numbers=5)
    assert rules.obs_bytes == 32
    assert [feature.name for feature in rules.features][:2] == ["obs[0]", "obs[1]"]
    assert "parts" not in rules.plain()
