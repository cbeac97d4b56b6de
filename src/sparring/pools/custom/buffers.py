"""What environments write of their games: arrays of this process, or memory that it shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.pools.custom.rules import CustomRules
from sparring.processes import Shapes

GAME_RUNNING, GAME_TERMINATED, GAME_TRUNCATED = 0, 1, 2
"""What `SharedBuffers.end` says of a game."""


@dataclass
class SharedBuffers:
    """The rows of some games, and what the last step brought; ends have a place for every game."""

    obs: npt.NDArray[np.uint8]
    """[R, row_bytes]; room for memory, which others write, is behind the observation."""
    mask: npt.NDArray[np.uint8]
    seat: npt.NDArray[np.int8]
    """[R], who decides; -1: nobody."""
    reward: npt.NDArray[np.float64]
    """[N, seats], as the envs pay it."""
    end: npt.NDArray[np.uint8]
    """[N], whether the last step ended the episode, and how."""
    last_obs: npt.NDArray[np.uint8]
    """[N, seats, row_bytes], of an episode that ended."""
    last_mask: npt.NDArray[np.uint8]
    last_over: npt.NDArray[np.bool_]
    """[N, seats], seats whose own part the rules had ended."""
    last_score: npt.NDArray[np.float64]
    last_length: npt.NDArray[np.int32]

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> SharedBuffers:
        """Take arrays of the right shapes, whoever made them."""
        return cls(**{item.name: arrays[item.name] for item in fields(cls)})

    @classmethod
    def make(cls, rules: CustomRules, games: int, memory: int = 0) -> SharedBuffers:
        """Make the arrays in this process."""
        shapes = buffer_shapes(rules, games, memory)
        return cls.of({name: np.zeros(shape, kind) for name, (kind, shape) in shapes.items()})

    def part(self, rows: int, first: int, games: int) -> SharedBuffers:
        """The buffers of a stretch of the games, in the same memory. rows: of a game."""
        by_row, by_game = slice(first * rows, (first + games) * rows), slice(first, first + games)
        found = {}
        for item in fields(self):
            array = getattr(self, item.name)
            found[item.name] = array[by_row if item.name in ("obs", "mask", "seat") else by_game]
        return SharedBuffers(**found)


def buffer_shapes(rules: CustomRules, games: int, memory: int = 0) -> Shapes:
    """Kinds and shapes of a buffers's arrays."""
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
