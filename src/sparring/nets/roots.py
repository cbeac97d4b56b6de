"""Positions behind the rows of a batch, for policies that search or see. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sparring.games.state import State
from sparring.pools.custom.base import CustomPool
from sparring.pools.native import Pool

Roots: TypeAlias = Sequence[tuple[Pool | CustomPool | State, npt.NDArray[np.intp]]]
"""Pools and states with their rows, in the order of the batch; rows are numbered as in the pool."""


def roots_in(state: State, row: int = 0) -> Roots:
    """Return the root of one decision in a state."""
    return [(state, np.array([row]))]
