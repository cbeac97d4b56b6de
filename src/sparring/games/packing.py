"""Pack float features into observation bytes, the inverse of `Rules.widen`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.features import Feature, runs_of

ROUNDING_TOLERANCE = 1e-3
"""Relative rounding error up to which a number counts as an integer."""


def pack_rows(
    features: Sequence[Feature], row_bytes: int, numbers: npt.NDArray[Any]
) -> npt.NDArray[np.uint8]:
    """Return rows [B, row_bytes] that `Rules.widen` turns into these numbers [B, features].

    Raises ConfigError for numbers that no row can represent.
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
    """Round to integers of a type; raises ConfigError for other numbers."""
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
