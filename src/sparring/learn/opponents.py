"""Frozen policies that a learner plays against: room for them, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sparring.learn.learner import Learner

Pots = Mapping[str, Mapping[int, float]]
"""Who may be drawn from every pot: weights by policy id."""


@runtime_checkable
class TakesOpponents(Learner, Protocol):
    """A learner with slots: room for frozen networks that are answered together.

    Slot k is policy id k, from 1 on; id 0 is the learner itself. What is in a slot may be exchanged
    when no game seats it; nobody is exchanged in the middle of a game.
    """

    @property
    def slots(self) -> int:
        """How many there are."""

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        """Put a frozen network of the learner's own kind into a slot."""

    def set_pots(self, pots: Pots, member: int = 0) -> None:
        """Say who is drawn from every pot from now on, when games begin."""

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id holds in the games that are running [slots + 1]."""
