"""MultiDiscrete and MultiBinary actions as one choice among all combinations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError

MAX_COMBINATIONS = 4096
"""Most combinations that are learned as separate actions."""
MAX_PARTS = 32
"""Most choices in one action."""
JOINT = ", "
"""Separator in the name of a combination."""


@dataclass(frozen=True)
class Choices:
    """Number of choices in every part of an action; the last part varies fastest."""

    counts: tuple[int, ...]
    start: tuple[int, ...]
    """Number of the first choice of every part in the env."""
    shape: tuple[int, ...]
    """Shape of one action in the env."""
    dtype: str

    @property
    def actions(self) -> int:
        return math.prod(self.counts)

    def plain(self) -> dict[str, Any]:
        """Values for a checkpoint; `read_choices` reads them."""
        lists = {name: list(getattr(self, name)) for name in ("counts", "start", "shape")}
        return {**lists, "dtype": self.dtype}

    def applied(self, action: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Turn indices of combinations [...] into env actions [..., *shape]."""
        parts = np.stack(np.unravel_index(action, self.counts), axis=-1) + np.array(self.start)
        actions: npt.NDArray[Any] = parts.reshape(*action.shape, *self.shape).astype(self.dtype)
        return actions

    def masks(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return masks of combinations [..., actions].

        given: masks of the parts, concatenated [..., sum of counts] as in sb3-contrib: a
            combination is legal if all of its parts are. Others are masks of combinations already.
        """
        if given.shape[-1:] != (sum(self.counts),):
            return given
        parts = np.split(given != 0, np.cumsum(self.counts)[:-1], axis=-1)

        def joined(one: npt.NDArray[Any], two: npt.NDArray[Any]) -> npt.NDArray[Any]:
            both = one[..., :, None] & two[..., None, :]
            return np.asarray(both.reshape(*both.shape[:-2], -1))

        return reduce(joined, parts)

    def name(self, action: int) -> str:
        """Name of a combination: the env's numbers."""
        return JOINT.join(map(str, self.applied(np.asarray(action)).ravel().tolist()))

    def names(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Names of combinations from the names of all parts, concatenated."""
        first = np.cumsum([0, *self.counts[:-1]])
        chosen = np.stack(np.unravel_index(np.arange(self.actions), self.counts), axis=-1)
        return tuple(JOINT.join(parts[at] for at in row) for row in (first + chosen).tolist())


def read_choices(saved: Mapping[str, Any]) -> Choices:
    """Read choices from a checkpoint."""
    counts, start, shape = (tuple(map(int, saved[name])) for name in ("counts", "start", "shape"))
    return Choices(counts, start, shape, str(saved["dtype"]))


def choices_of(space: Any, where: str) -> Choices:
    """Read a MultiDiscrete or MultiBinary action space; too many combinations are refused."""
    counts = np.asarray(getattr(space, "nvec", np.full(space.shape, 2))).ravel()
    start = np.asarray(getattr(space, "start", np.zeros(space.shape, int))).ravel()
    total = math.prod(counts.tolist())
    if not 1 <= len(counts) <= MAX_PARTS or total > MAX_COMBINATIONS:
        raise ConfigError(
            f"{where}: actions are {space}, {total:,} combinations; 1 to {MAX_COMBINATIONS:,} are "
            f"learned, of at most {MAX_PARTS} parts; ask for the parts one after the other"
        )
    shape = tuple(map(int, space.shape))
    return Choices(tuple(counts.tolist()), tuple(start.tolist()), shape, space.dtype.name)
