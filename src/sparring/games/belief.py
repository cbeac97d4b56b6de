"""Beliefs about what is hidden, as arguments of draws: log-weights in the layout of `hidden`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.arguments import check_int
from sparring.games.rules import Rules

MAX_WORLDS = 65536
"""Most worlds of one decision."""


def check_belief(
    rules: Rules, belief: Any, rows: tuple[int, ...]
) -> npt.NDArray[np.float32] | None:
    """Return a belief [*rows, numbers] as log-weights, None for none; raise if it is wrong."""
    if belief is None:
        return None
    size = rules.native.belief_size
    if not size:
        raise ConfigError(f"{rules.name} is drawn uniformly and takes no belief; leave it out")
    weights = np.ascontiguousarray(belief, np.float32)
    if weights.shape != (*rows, size):
        raise ConfigError(
            f"belief has shape {weights.shape}; {rules.name} needs {(*rows, size)}, as "
            "Policy.belief returns it"
        )
    if np.isnan(weights).any():
        raise ConfigError("belief: a log-weight is not a number; give log-probabilities")
    return weights


def check_worlds(worlds: Any) -> int:
    return check_int("worlds", worlds, 1, MAX_WORLDS)


def worlds_array(rules: Rules, rows: tuple[int, ...], worlds: Any) -> npt.NDArray[np.uint8]:
    """Return room for positions [*rows, worlds, bytes of a game]."""
    return np.empty((*rows, check_worlds(worlds), rules.native.game_bytes), np.uint8)
