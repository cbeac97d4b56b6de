"""Hidden information as a prediction target: cards or money of the other players.

A game's folder may have `hidden.py` with `hidden(rules)`, which returns a `Hidden`, or None if the
flags hide nothing. The targets are read from the bytes of the native game state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.errors import ConfigError
from sparring.games.lookup import game_module
from sparring.games.rules import Rules

HiddenReader = Callable[[Any, Any, Any], Any]
"""Function of a library (numpy or torch), the bytes of a field [rows, bytes] and seats [rows] that
returns classes [rows, items]. It uses slices and arithmetic only: list indices would make a GPU
synchronize."""


@dataclass(frozen=True)
class Hidden:
    """Items that a seat cannot see, each of one of several classes."""

    field: str
    """Name of the state field with the true values."""
    items: tuple[str, ...]
    """Names of the items."""
    classes: tuple[str, ...]
    """Names of the classes."""
    read: HiddenReader
    dull: int = -1
    """Class that most items have; the accuracy leaves them out. -1: none."""

    @property
    def width(self) -> int:
        """Number of logits: items times classes."""
        return len(self.items) * len(self.classes)


@dataclass(frozen=True)
class StateField:
    """Byte range of a state field within a game of a pool."""

    first: int
    bytes: int

    @property
    def byte_slice(self) -> slice:
        return slice(self.first, self.first + self.bytes)


def of_others(library: Any, by_seat: Sequence[Any], seat: Any) -> Any:
    """Return what the other seats have [rows, others, n], from the observer's left on.

    by_seat: what every seat has [rows, n].
    """
    seats = len(by_seat)
    away = [(other - seat) % seats for other in range(seats)]
    found = (
        sum(mine * (away[other] == distance)[:, None] for other, mine in enumerate(by_seat))
        for distance in range(1, seats)
    )
    return library.stack(list(found), 1)


def hidden_of(rules: Rules) -> Hidden | None:
    """Return the hidden information of a game, None if it declares none."""
    module = game_module(rules.name, "hidden")
    return module.hidden(rules) if module else None


def read_hidden(rules: Rules, hidden: Hidden, tables: npt.NDArray[np.uint8], seat: Any) -> Any:
    """Return the true classes from a pool's games [games, bytes], relative to one seat each."""
    byte_slice = state_field(rules, hidden.field).byte_slice
    return hidden.read(np, np.ascontiguousarray(tables[:, byte_slice]), np.asarray(seat))


def state_field(rules: Rules, name: str) -> StateField:
    """Return the byte range of a state field."""
    return _state_field(rules.name, name)


@lru_cache
def _state_field(game: str, name: str) -> StateField:
    for found, first, count in _native.state_fields(Rules(game).native):
        if found == name:
            return StateField(first, count)
    raise ConfigError(f"hidden.py of {game}: its state has no field {name!r}; fix it")
