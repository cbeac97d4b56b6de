"""Rows of bytes from numbers: what `Rules.widen` does, backwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError

if TYPE_CHECKING:
    from sparring.games.rules import Rules

WHOLE_BY = 1e-3
"""A number may be off by so much of itself, by rounding, and still stand for a whole one."""


def narrow(rules: Rules, numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the rows [B, obs_bytes] of which `rules.widen` makes these numbers [B, features].

    Numbers that no row has are refused.
    """
    rows = np.zeros((len(numbers), rules.obs_bytes), np.uint8)
    for first, count, offset, _, divisor in rules.runs:
        kind = np.dtype(rules.features[first].dtype)
        raw = np.asarray(numbers[:, first : first + count], np.float64) * divisor
        if kind.kind != "f":
            raw = whole(rules, first, raw, kind)
        packed = np.ascontiguousarray(raw.astype(kind)).view(np.uint8)
        rows[:, offset : offset + count * kind.itemsize] = packed
    return rows


def whole(
    rules: Rules, first: int, raw: npt.NDArray[np.float64], kind: np.dtype[Any]
) -> npt.NDArray[np.float64]:
    """Round numbers that stand for whole ones of this kind; refuse others."""
    bounds, nearest = np.iinfo(kind), np.rint(raw)
    near = np.abs(raw - nearest) <= WHOLE_BY * np.maximum(1.0, np.abs(raw))
    for row, at in np.argwhere(~near)[:1]:
        feature = rules.features[first + at]
        raise ConfigError(
            f"numbers: {feature.name}={raw[row, at] / feature.divisor:g} is no multiple of "
            f"1/{feature.divisor:g}"
        )
    for row, at in np.argwhere((nearest < bounds.min) | (nearest > bounds.max))[:1]:
        feature = rules.features[first + at]
        raise ConfigError(
            f"numbers: {feature.name}={raw[row, at] / feature.divisor:g} is out of its range"
        )
    return nearest
