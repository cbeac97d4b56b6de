"""Rows of bytes from numbers: what `Rules.widen` does, backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.features import Feature, runs_of

ROUNDING_TOLERANCE = 1e-3
"""A number may be off by so much of itself, by rounding, and still stand for a whole one."""


def pack_rows(
    features: Sequence[Feature], row_bytes: int, numbers: npt.NDArray[Any]
) -> npt.NDArray[np.uint8]:
    """Return the rows [B, row_bytes] of which `Rules.widen` makes these numbers [B, features].

    Numbers that no row has are refused.
    """
    rows = np.zeros((len(numbers), row_bytes), np.uint8)
    for first, count, offset, _, divisor in runs_of(features):
        kind = np.dtype(features[first].dtype)
        raw = np.asarray(numbers[:, first : first + count], np.float64) * divisor
        if kind.kind != "f":
            raw = round_to_ints(features[first : first + count], raw, kind)
        packed = np.ascontiguousarray(raw.astype(kind)).view(np.uint8)
        rows[:, offset : offset + count * kind.itemsize] = packed
    return rows


def round_to_ints(
    features: Sequence[Feature], raw: npt.NDArray[np.float64], kind: np.dtype[Any]
) -> npt.NDArray[np.float64]:
    """Round numbers that stand for whole ones of this kind; refuse others."""
    bounds, nearest = np.iinfo(kind), np.rint(raw)
    near = np.abs(raw - nearest) <= ROUNDING_TOLERANCE * np.maximum(1.0, np.abs(raw))
    for row, at in np.argwhere(~near)[:1]:
        feature = features[at]
        raise ConfigError(
            f"numbers: {feature.name}={raw[row, at] / feature.divisor:g} is no multiple of "
            f"1/{feature.divisor:g}"
        )
    for row, at in np.argwhere((nearest < bounds.min) | (nearest > bounds.max))[:1]:
        feature = features[at]
        raise ConfigError(
            f"numbers: {feature.name}={raw[row, at] / feature.divisor:g} is out of its range"
        )
    return nearest
