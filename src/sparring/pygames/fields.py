"""What rules in Python declare: fields of the state, flags, blocks of the observation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

WHOLE = ("int8", "int16", "int32", "int64")
FEATURE_TYPES = ("uint8", "int8", "int16", "float32")
"""Types of features, in the order of a row's bytes."""
ROW_STEP = 16
HEAD_FIELDS = ("seat", "role", "over")
"""Fields of every state: who decides, in which role, and whether the game has ended."""
HEAD = 8
"""Bytes in front of the declared fields: the seat, the role, how the game ended."""


@dataclass(frozen=True)
class Int:
    """A whole number of the state, or an array of them, from `low` to `high`.

    It takes the smallest signed type, so that sums of fields behave as in Python.
    """

    low: int
    high: int
    shape: tuple[int, ...] | int = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        for name in WHOLE:
            limit = np.iinfo(name)
            if limit.min <= self.low and self.high <= limit.max:
                return np.dtype(name)
        raise ValueError(f"{self.low} to {self.high} is more than 64 bits hold")


@dataclass(frozen=True)
class Float:
    """A number of the state with 64 bits, or an array of them, from `low` to `high`."""

    low: float = -1e300
    high: float = 1e300
    shape: tuple[int, ...] | int = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)


@dataclass(frozen=True)
class Flag:
    """A setting of the rules, a whole number: `--set NAME=VALUE`.

    words: names of the values from 0 on. live: may change while games run, from each reset on.
    """

    default: int
    low: int
    high: int
    words: Sequence[str] = ()
    help: str = ""
    live: bool = False


@dataclass(frozen=True)
class Block:
    """A part of the observation: an array; its numbers are divided by `divisor` for networks.

    dtype: uint8, int8, int16 or float32. names: of its columns.
    """

    shape: tuple[int, ...] | int = ()
    divisor: float = 1.0
    dtype: str = "uint8"
    names: Sequence[str] = ()


def shape_of(field: Int | Float | Block) -> tuple[int, ...]:
    """Return the shape of a field; () for a single number."""
    return (field.shape,) if isinstance(field.shape, int) else tuple(field.shape)


def state_dtype(fields: dict[str, Int | Float], seats: int, *, paid: bool) -> np.dtype[Any]:
    """Lay out a state. paid: the core adds up rewards behind the fields, where nothing scores."""
    names, formats, offsets = list(HEAD_FIELDS), ["i1", "i1", "i1"], [0, 1, 2]
    at = HEAD
    for name, field in fields.items():
        size = field.dtype.itemsize
        at = -(-at // size) * size
        names.append(name)
        formats.append((field.dtype.str, shape_of(field)) if shape_of(field) else field.dtype.str)  # type: ignore[arg-type]
        offsets.append(at)
        at += size * prod(shape_of(field))
    at = -(-at // HEAD) * HEAD + (-(-seats * 4 // HEAD) * HEAD if paid else 0)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": at})


def paid_offset(fields: dict[str, Int | Float], seats: int) -> int:
    """Where the core adds up rewards."""
    return state_dtype(fields, seats, paid=False).itemsize


def observation_dtype(blocks: dict[str, Block]) -> np.dtype[Any]:
    """Lay out an observation as the core does: all uint8 first, then int8, int16 and float32."""
    places: dict[str, int] = {}
    at = 0
    for kind in FEATURE_TYPES:
        size = np.dtype(kind).itemsize
        for name, block in blocks.items():
            if block.dtype == kind:
                at = -(-at // size) * size
                places[name] = at
                at += size * prod(shape_of(block))
    formats = [
        (block.dtype, shape_of(block)) if shape_of(block) else block.dtype
        for block in blocks.values()
    ]
    return np.dtype(
        {
            "names": list(blocks),
            "formats": formats,
            "offsets": [places[name] for name in blocks],
            "itemsize": -(-at // ROW_STEP) * ROW_STEP,
        }
    )


def block_rows(name: str, block: Block) -> tuple[str, int, list[tuple[str, str, float]]]:
    """Describe a block for the core: rows of named columns."""
    shape = shape_of(block)
    rows, columns = (shape[0], prod(shape[1:])) if len(shape) > 1 else (1, prod(shape))
    names = list(block.names)
    if len(names) == prod(shape) and rows > 1:
        rows, columns = 1, prod(shape)
    names = names or ([name] if not shape else [str(i) for i in range(columns)])
    return name, rows, [(each, block.dtype, float(block.divisor)) for each in names]
