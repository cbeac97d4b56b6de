"""Actors that seat somebody anew whenever a game begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class SeatsAnew(Protocol):
    """An actor whose players last for a game."""

    def begin(self, games: Iterable[int] | None = None) -> None:
        """Let games begin anew, by their numbers in the run; all of them if none are given."""


def tell_begun(actors: Mapping[int, object], batch: Any = None, first: int = 0) -> None:
    """Tell actors which games of a batch ended, and so begin anew; without a batch all of them.

    first: the number in the run of the batch's first game.
    """
    for actor in actors.values():
        if isinstance(actor, SeatsAnew):
            ended = None if batch is None else np.flatnonzero(batch.terminated | batch.truncated)
            actor.begin(None if ended is None else (first + ended).tolist())
