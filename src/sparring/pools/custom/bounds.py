"""Bounds of continuous actions: scale -1..1 to the environment's action space."""

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
    """Lowest and highest values of an action's components, with its shape and dtype."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]
    """Shape of one action; components are counted row by row."""
    dtype: str

    def plain(self) -> dict[str, Any]:
        """Values for a checkpoint; `read_bounds` reads them."""
        return {
            "low": list(self.low),
            "high": list(self.high),
            "shape": list(self.shape),
            "dtype": self.dtype,
        }

    @cached_property
    def _scale(self) -> tuple[npt.NDArray[np.float64], ...]:
        """Low, high, their middle, and half of their distance."""
        low, high = np.array(self.low), np.array(self.high)
        return low, high, (low + high) / 2, (high - low) / 2

    def applied(self, action: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Scale actions [..., box] in -1..1 to env actions [..., *shape]; others are clipped."""
        low, high, middle, reach = self._scale
        scaled = middle + reach * np.asarray(action, np.float64)
        # Rounding may leave the bounds, which some environments refuse.
        scaled = np.minimum(np.maximum(scaled, low), high)
        return scaled.reshape(*action.shape[:-1], *self.shape).astype(self.dtype)


def read_bounds(saved: Mapping[str, Any]) -> Bounds:
    """Read bounds from a checkpoint."""
    low, high = (tuple(map(float, saved[name])) for name in ("low", "high"))
    return Bounds(low, high, tuple(map(int, saved["shape"])), str(saved["dtype"]))


def bounds_of(space: Any, where: str) -> Bounds:
    """Read a Box of actions; unbounded ones are refused."""
    if space.dtype.kind != "f":
        raise ConfigError(
            f"{where}: actions are {space}, whole numbers in a Box; use a Box of floats, or "
            "Discrete for choices"
        )
    low, high = (np.asarray(end, np.float64).ravel() for end in (space.low, space.high))
    if not len(low):
        raise ConfigError(f"{where}: the action space {space} holds no numbers")
    with np.errstate(over="ignore"):  # float32's limits mean unbounded
        endless = ~np.isfinite((high - low).astype(np.float32))
    for number in np.flatnonzero(endless)[:1]:
        raise ConfigError(
            f"{where}: number {number} of an action lies within {low[number]:g}..{high[number]:g}, "
            "and -1..1 can be scaled to finite ends alone; take ClipAction off, or say the ends: "
            f"gymnasium.wrappers.TransformAction(env, lambda a: a, Box(-1, 1, {space.shape}))"
        )
    return Bounds(tuple(low.tolist()), tuple(high.tolist()), tuple(space.shape), space.dtype.name)
