"""What a seat does not see, as something that can be predicted: others' cards, others' money.

A game that has it says so in its folder: `hidden.py` has `hidden(rules)`, which returns a `Hidden`,
or None where flags leave nothing to hide. It is read from the bytes of a game's own state, in which
the native core keeps the truth.
"""

from __future__ import annotations

from collections.abc import Callable
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
"""From numpy or torch, the bytes of a field [rows, bytes] and seats [rows] to classes
[rows, items], all of them arrays of that library. With slices and arithmetic alone: no lists as
indices, so that a GPU does it too without waiting for anybody."""


@dataclass(frozen=True)
class Hidden:
    """Things that a seat may guess about, each of one of several classes."""

    field: str
    """Of the state, in which the truth is."""
    items: tuple[str, ...]
    """What is guessed, by name."""
    classes: tuple[str, ...]
    """What each may be."""
    read: HiddenReader
    dull: int = -1
    """A class that says little, because most items have it; those do not count in the accuracy."""

    @property
    def width(self) -> int:
        """Logits: for every item one of each class."""
        return len(self.items) * len(self.classes)


@dataclass(frozen=True)
class StateField:
    """A field of a game's state, where its bytes lie in a table of a pool."""

    first: int
    bytes: int

    @property
    def stretch(self) -> slice:
        """Its bytes."""
        return slice(self.first, self.first + self.bytes)


def hidden_of(rules: Rules) -> Hidden | None:
    """Return what the seats of a game do not see, None where it does not say."""
    module = game_module(rules.name, "hidden")
    return module.hidden(rules) if module else None


def read_hidden(rules: Rules, hidden: Hidden, tables: npt.NDArray[np.uint8], seat: Any) -> Any:
    """Read the truth from a pool's tables [games, bytes], as seen from a seat of each."""
    stretch = state_field(rules, hidden.field).stretch
    return hidden.read(np, np.ascontiguousarray(tables[:, stretch]), np.asarray(seat))


def state_field(rules: Rules, name: str) -> StateField:
    """Where a field of a game's state lies in the tables of its pools."""
    return _state_field(rules.name, name)


@lru_cache
def _state_field(game: str, name: str) -> StateField:
    for found, first, count in _native.state_fields(Rules(game).native):
        if found == name:
            return StateField(first, count)
    raise ConfigError(f"hidden.py of {game}: its state has no field {name!r}; mend it")
