"""Gymnasium spaces of a game's observations and actions. Needs gymnasium."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from sparring.games.rules import Rules


def observation_space(rules: Rules) -> spaces.Space[npt.NDArray[np.float32]]:
    """Return the box of observations, bounded by the range of each feature's dtype."""
    bounds = np.array([dtype_bounds(feature.dtype) for feature in rules.features], np.float32)
    # Divided in float32 as `rules.widen` does it, so that the extremes lie inside.
    bounds /= np.array([[feature.divisor] for feature in rules.features], np.float32)
    box: spaces.Space[Any] = spaces.Box(bounds[:, 0], bounds[:, 1], dtype=np.float32)
    return box


def dtype_bounds(dtype: str) -> tuple[float, float]:
    """Return the smallest and largest number of a dtype; floats have no bound."""
    if np.dtype(dtype).kind == "f":
        return -np.inf, np.inf
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def action_space(rules: Rules) -> spaces.Space[Any]:
    """Return the action space of one seat."""
    if rules.box:
        return spaces.Box(-1.0, 1.0, (rules.box,), np.float32)
    return spaces.Discrete(rules.actions)
