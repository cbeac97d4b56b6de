"""Short ways that have to be the long ones."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from sparring.errors import SparringError
from sparring.pools.custom.encoding import encoding_of

SPACES = (
    spaces.Box(-1, 1, (3,), np.float32),
    spaces.Box(0, 9, (2, 2), np.int64),
    spaces.Discrete(4, start=-2),
    spaces.MultiDiscrete([3, 2]),
    spaces.Dict(
        {
            "b": spaces.Box(-1, 1, (2, 3), np.float64),
            "a": spaces.Tuple((spaces.MultiBinary(4), spaces.Discrete(3))),
        }
    ),
    spaces.Dict({"m": spaces.MultiDiscrete([3, 2]), "x": spaces.Discrete(2)}),
)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_one_observation_is_flattened_in_place(space: spaces.Space[object]) -> None:
    encoding = encoding_of(space, spaces.Discrete(2), "an env")
    space.seed(3)
    for _ in range(20):
        obs, out = space.sample(), np.full(encoding.numbers, 7, np.float32)
        encoding.write(obs, out)
        np.testing.assert_array_equal(out, encoding.flatten(obs))


@pytest.mark.parametrize(
    ("space", "obs"),
    [
        (SPACES[0], np.zeros(4, np.float32)),
        (SPACES[2], 2),
        (SPACES[2], -3),
        (SPACES[2], 0.7),
        (SPACES[3], np.array([0.5, 1.0])),
        (spaces.MultiBinary(2), np.array([0, 2])),
        (spaces.MultiBinary(2), np.array([0.5, 1.0])),
    ],
)
def test_what_does_not_fit_is_refused(space: spaces.Space[object], obs: object) -> None:
    encoding = encoding_of(space, spaces.Discrete(2), "an env")
    with pytest.raises(
        SparringError, match=r"an observation (has shape|lies outside of its space)"
    ):
        encoding.write(obs, np.zeros(encoding.numbers, np.float32))
    with pytest.raises(
        SparringError, match=r"an observation (has shape|lies outside of its space)"
    ):
        encoding.flatten(np.asarray(obs)[None], 1)
