"""Arrays that environments write their games into, in this process or in shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.pools.custom.rules import CustomRules
from sparring.processes import Shapes

GAME_RUNNING, GAME_TERMINATED, GAME_TRUNCATED = 0, 1, 2
"""Values of `SharedBuffers.end`."""


@dataclass
class SharedBuffers:
    """Rows of some games and the results of the last step; ends have an entry for every game."""

    obs: npt.NDArray[np.uint8]
    """[R, row_bytes], the observation followed by memory, which the pool writes."""
    mask: npt.NDArray[np.uint8]
    seat: npt.NDArray[np.int8]
    """[R], the seat that decides; -1: none."""
    reward: npt.NDArray[np.float64]
    """[N, seats], as the environments return it."""
    end: npt.NDArray[np.uint8]
    """[N], whether and how the last step ended the episode."""
    last_obs: npt.NDArray[np.uint8]
    """[N, seats, row_bytes], the last observations of an episode that ended."""
    last_mask: npt.NDArray[np.uint8]
    last_over: npt.NDArray[np.bool_]
    """[N, seats], seats that terminated."""
    last_score: npt.NDArray[np.float64]
    last_length: npt.NDArray[np.int32]

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> SharedBuffers:
        """Wrap arrays of the right shapes."""
        return cls(**{item.name: arrays[item.name] for item in fields(cls)})

    @classmethod
    def make(cls, rules: CustomRules, games: int, memory: int = 0) -> SharedBuffers:
        """Allocate the arrays in this process."""
        shapes = buffer_shapes(rules, games, memory)
        return cls.of({name: np.zeros(shape, dtype) for name, (dtype, shape) in shapes.items()})

    def part(self, rows: int, first: int, games: int) -> SharedBuffers:
        """Views of a range of games. rows: per game."""
        by_row, by_game = slice(first * rows, (first + games) * rows), slice(first, first + games)
        views = {}
        for item in fields(self):
            array = getattr(self, item.name)
            views[item.name] = array[by_row if item.name in ("obs", "mask", "seat") else by_game]
        return SharedBuffers(**views)


def buffer_shapes(rules: CustomRules, games: int, memory: int = 0) -> Shapes:
    """Dtypes and shapes of the arrays."""
    rows, seats, row_bytes = games * rules.rows, rules.seats, rules.obs_bytes + memory
    return {
        "obs": (np.uint8, (rows, row_bytes)),
        "mask": (np.uint8, (rows, rules.actions)),
        "seat": (np.int8, (rows,)),
        "reward": (np.float64, (games, seats)),
        "end": (np.uint8, (games,)),
        "last_obs": (np.uint8, (games, seats, row_bytes)),
        "last_mask": (np.uint8, (games, seats, rules.actions)),
        "last_over": (np.bool_, (games, seats)),
        "last_score": (np.float64, (games, seats)),
        "last_length": (np.int32, (games,)),
    }
