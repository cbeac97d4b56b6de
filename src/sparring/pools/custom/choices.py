"""Several choices at once, MultiDiscrete and MultiBinary, as one choice among all combinations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError

MOST = 4096
"""Combinations that are learned as actions of their own."""
MAX_PARTS = 32
"""Choices that one action may have."""
JOINT = ", "
"""Between the parts of a combination's name."""


@dataclass(frozen=True)
class Choices:
    """How many there are to choose from in every part of an action; the last part runs fastest."""

    counts: tuple[int, ...]
    start: tuple[int, ...]
    """What the env calls the first choice of every part."""
    shape: tuple[int, ...]
    """Of one action as the env takes it."""
    dtype: str

    @property
    def actions(self) -> int:
        return math.prod(self.counts)

    def plain(self) -> dict[str, Any]:
        """Return what `read_choices` reads, for a checkpoint."""
        lists = {name: list(getattr(self, name)) for name in ("counts", "start", "shape")}
        return {**lists, "dtype": self.dtype}

    def applied(self, action: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Turn numbers of combinations [...] into the env's own actions [..., *shape]."""
        parts = np.stack(np.unravel_index(action, self.counts), axis=-1) + np.array(self.start)
        own: npt.NDArray[Any] = parts.reshape(*action.shape, *self.shape).astype(self.dtype)
        return own

    def masks(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return masks of combinations [..., actions].

        given: those of the parts, one behind the other [..., sum of counts], as sb3-contrib has
            them: a combination is legal if all of its parts are. Otherwise those of combinations.
        """
        if given.shape[-1:] != (sum(self.counts),):
            return given
        parts = np.split(given != 0, np.cumsum(self.counts)[:-1], axis=-1)

        def joined(one: npt.NDArray[Any], two: npt.NDArray[Any]) -> npt.NDArray[Any]:
            both = one[..., :, None] & two[..., None, :]
            return np.asarray(both.reshape(*both.shape[:-2], -1))

        return reduce(joined, parts)

    def name(self, action: int) -> str:
        """What a combination is called without names: the env's own numbers."""
        return JOINT.join(map(str, self.applied(np.asarray(action)).ravel().tolist()))

    def names(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Return names of combinations from those of all parts, one behind the other."""
        first = np.cumsum([0, *self.counts[:-1]])
        chosen = np.stack(np.unravel_index(np.arange(self.actions), self.counts), axis=-1)
        return tuple(JOINT.join(parts[at] for at in row) for row in (first + chosen).tolist())


def read_choices(saved: Mapping[str, Any]) -> Choices:
    """Read choices that a checkpoint holds."""
    counts, start, shape = (tuple(map(int, saved[name])) for name in ("counts", "start", "shape"))
    return Choices(counts, start, shape, str(saved["dtype"]))


def choices_of(space: Any, where: str) -> Choices:
    """Read a MultiDiscrete or MultiBinary space of actions; too many combinations are refused."""
    counts = np.asarray(getattr(space, "nvec", np.full(space.shape, 2))).ravel()
    start = np.asarray(getattr(space, "start", np.zeros(space.shape, int))).ravel()
    total = math.prod(counts.tolist())
    if not 1 <= len(counts) <= MAX_PARTS or total > MOST:
        raise ConfigError(
            f"{where}: actions are {space}, {total:,} combinations; 1 to {MOST:,} are learned, of "
            f"{MAX_PARTS} parts at most, each as an action: ask for the parts one after the other"
        )
    own = tuple(map(int, space.shape))
    return Choices(tuple(counts.tolist()), tuple(start.tolist()), own, space.dtype.name)
