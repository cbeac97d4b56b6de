"""Continuous actions of custom environments: a policy's -1..1 in the env's own units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError


@dataclass(frozen=True)
class Bounds:
    """What an env takes where a policy says -1 and 1, number by number, and in which form."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]
    """Of one action; its numbers are counted row by row."""
    dtype: str

    def plain(self) -> dict[str, Any]:
        """Return what `read_bounds` reads, for a checkpoint."""
        return {
            "low": list(self.low),
            "high": list(self.high),
            "shape": list(self.shape),
            "dtype": self.dtype,
        }

    @cached_property
    def _scale(self) -> tuple[npt.NDArray[np.float64], ...]:
        """Both ends, the middle between them, and how far they are from it."""
        low, high = np.array(self.low), np.array(self.high)
        return low, high, (low + high) / 2, (high - low) / 2

    def applied(self, action: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Turn numbers [..., box] into the env's own actions [..., *shape]; -1 is low, 1 is high.

        Numbers beyond that are cut off.
        """
        low, high, middle, reach = self._scale
        own = middle + reach * np.asarray(action, np.float64)
        # Numbers within -1..1 may end beyond by rounding, which some envs refuse.
        own = np.minimum(np.maximum(own, low), high)
        return own.reshape(*action.shape[:-1], *self.shape).astype(self.dtype)


def read_bounds(saved: Mapping[str, Any]) -> Bounds:
    """Read bounds that a checkpoint holds."""
    low, high = (tuple(map(float, saved[name])) for name in ("low", "high"))
    return Bounds(low, high, tuple(map(int, saved["shape"])), str(saved["dtype"]))


def bounds_of(space: Any, where: str) -> Bounds:
    """Read a Box of actions; those whose numbers have no ends are refused."""
    if space.dtype.kind != "f":
        raise ConfigError(
            f"{where}: actions are {space}, whole numbers in a Box; use a Box of floats, or "
            "Discrete for choices"
        )
    low, high = (np.asarray(end, np.float64).ravel() for end in (space.low, space.high))
    if not len(low):
        raise ConfigError(f"{where}: the action space {space} holds no numbers")
    with np.errstate(over="ignore"):  # the ends of float32 stand for no ends
        endless = ~np.isfinite((high - low).astype(np.float32))
    for number in np.flatnonzero(endless)[:1]:
        raise ConfigError(
            f"{where}: number {number} of an action lies within {low[number]:g}..{high[number]:g}, "
            "and -1..1 can be scaled to finite ends alone; take ClipAction off, or say the ends: "
            f"gymnasium.wrappers.TransformAction(env, lambda a: a, Box(-1, 1, {space.shape}))"
        )
    return Bounds(tuple(low.tolist()), tuple(high.tolist()), tuple(space.shape), space.dtype.name)
