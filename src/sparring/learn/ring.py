"""What a replay keeps of decisions: one array per column, written round and round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.rollout import RECORD

MOST_PLACES = 2**31 - 1
"""Places of a ring, and rows of a rollout, are linked by numbers of 32 bits."""
LEAST_ROLLOUTS = 2
"""So many rollouts a ring must hold, or decisions would be gone before they are learned from."""

Rows = Mapping[str, npt.NDArray[Any]]


def columns_of(
    rules: Rules, row_bytes: int, *, records: bool = False
) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Type and shape of what is kept of every decision, in the smallest types that hold it.

    records: what came of its goal, too.
    """
    action = (np.int16 if rules.actions <= 2**15 else np.int32, ())
    return {
        "obs": (np.uint8, (row_bytes,)),
        "mask": (np.uint64, (mask_words(rules.actions),)),
        "action": (np.float32, (rules.box,)) if rules.box else action,
        "next": (np.int32, ()),
        "end": (np.uint8, ()),
        "paid": (np.float32, ()),
        "discount": (np.float32, ()),
        **({RECORD: (np.uint32, ())} if records else {}),
    }


def bytes_per_decision(rules: Rules, row_bytes: int, *, records: bool = False) -> int:
    """Bytes of one place."""
    return sum(
        np.dtype(kind).itemsize * int(np.prod(shape, dtype=np.int64))
        for kind, shape in columns_of(rules, row_bytes, records=records).values()
    )


def mask_words(actions: int) -> int:
    """Words of 64 bits that hold a mask."""
    return -(-actions // 64)


def check_capacity(capacity: int, rows: int) -> None:
    """Refuse a ring that rollouts of so many rows would overrun, or whose places have no number."""
    if capacity < LEAST_ROLLOUTS * rows:
        raise ConfigError(
            f"replay.capacity={capacity} is too small: a rollout brings up to {rows} decisions, "
            f"at least {LEAST_ROLLOUTS * rows} must fit; raise it, or make collect.games or "
            "collect.steps smaller"
        )
    if capacity > MOST_PLACES:
        raise ConfigError(f"replay.capacity={capacity} is too large, at most {MOST_PLACES}")


class Ring:
    """The columns. Serial number s lies at place s % capacity until s + capacity comes."""

    def __init__(
        self, rules: Rules, row_bytes: int, capacity: int, *, records: bool = False
    ) -> None:
        self.capacity = capacity
        self.columns: dict[str, npt.NDArray[Any]] = {
            name: np.empty((capacity, *shape), kind)
            for name, (kind, shape) in columns_of(rules, row_bytes, records=records).items()
        }
        self.columns["end"][:] = 0  # whatever else is read was written before

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """A column."""
        return self.columns[name]

    def write(self, first: int, rows: Rows) -> None:
        """Put rows at serial numbers from `first` on."""
        for name, values in rows.items():
            for here, there in self.stretches(first, len(values)):
                self.columns[name][here] = values[there]

    def stretches(self, first: int, count: int) -> Iterator[tuple[slice, slice]]:
        """Where serial numbers lie: slices of the ring, each with that of the numbers."""
        at, done = first % self.capacity, 0
        while done < count:
            part = min(count - done, self.capacity - at)
            yield slice(at, at + part), slice(done, done + part)
            at, done = 0, done + part
