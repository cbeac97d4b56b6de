"""Odd arguments: what a call was not made for, made out of what it was made for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Lots = np.random.Generator

INTS = (-1, -2, 0, 1, 2, 3, 7, 99, 255, 256, 65536, -(2**31), 2**31 - 1, 2**31, -(2**31) - 1)
WIDE_INTS = (2**32, 2**40, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, -(10**30), 10**5000)
REALS = (math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-320, 0.5, -0.0)
TEXTS = ("", "x", "\N{SNOWMAN}", "a\0b", "7", "x" * 5000, "random", "tic_tac_toe")
OTHERS: tuple[Any, ...] = (None, True, object(), int, b"", b"\xff" * 9, (), [], {}, [None], [[]])
DTYPES = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c8", "O", ">i4")


def one(lots: Lots, choices: Any) -> Any:
    """Return one of some things, which may be of any kind."""
    return choices[int(lots.integers(len(choices)))]


def odd(lots: Lots, value: Any, others: Any = OTHERS) -> Any:
    """Return something else than a valid value, often nearly the same."""
    if lots.random() < 0.15:
        return one(lots, (*others, *OTHERS, one(lots, TEXTS), one(lots, REALS), one(lots, INTS)))
    if isinstance(value, np.ndarray):
        return odd_array(lots, value)
    if isinstance(value, bool):
        return one(lots, (not value, 2, None, "x"))
    if isinstance(value, int):
        return one(lots, (value + 1, value - 1, -value, str(value % 99), *INTS, *WIDE_INTS, *REALS))
    if isinstance(value, float):
        return one(lots, (*REALS, 0, 10**30, None, "1.0"))
    if isinstance(value, str):
        return one(lots, (*TEXTS, value + "x", value[1:], None, value.encode()))
    if isinstance(value, bytes):  # what is in them is another test's matter
        return one(lots, (value[:-1], value + b"\0", b"", None, "text", bytearray(value)))
    if isinstance(value, list | tuple):
        return odd_list(lots, value)
    if isinstance(value, dict):
        return {key: odd(lots, one, others) for key, one in value.items()} or {"x": 1}
    return one(lots, (*others, *OTHERS))


def odd_list(lots: Lots, value: Any) -> Any:
    """Return a list of another length, or with an odd entry."""
    kind = int(lots.integers(5))
    if kind == 0 or not value:
        return one(lots, ([], [0], None, [0] * 300, np.zeros(3)))
    if kind == 1:
        return type(value)(value[:-1])
    if kind == 2:
        return type(value)([*value, value[-1]])
    at = int(lots.integers(len(value)))
    return type(value)([*value[:at], odd(lots, value[at]), *value[at + 1 :]])


def odd_array(lots: Lots, value: np.ndarray[Any, Any]) -> Any:
    """Return an array of another size, shape, kind or layout, or with other numbers in it."""
    kind = int(lots.integers(16))
    if kind == 0:
        return value[:-1].copy()
    if kind == 1:
        return np.concatenate([value, value[-1:]]) if len(value) else np.zeros(1, value.dtype)
    if kind == 2:
        return np.zeros(
            one(lots, ((0,), (), (0, 3), (1, 1, 1), (2**40, 0), (0, 2**40))), value.dtype
        )
    if kind == 3:
        return value[None] if lots.random() < 0.5 else value.reshape(-1)
    if kind == 4:
        return np.repeat(value, 2, axis=0)[::2]
    if kind == 5:
        return value[::-1]
    if kind == 6:
        with np.errstate(all="ignore"):
            return value.astype(one(lots, DTYPES))
    if kind == 7:
        kept = value.copy()
        kept.flags.writeable = False
        return kept
    if kind == 8:
        return shifted(value)
    if kind == 9:
        return np.broadcast_to(value[:1], value.shape) if len(value) else value
    if kind == 10:
        return value.T
    if kind == 11:
        return value.tolist()
    if kind == 12:
        return memoryview(value.tobytes())
    return other_numbers(lots, value)


def shifted(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the same numbers one byte away from where they could be read."""
    room = np.zeros(value.nbytes + 1, np.uint8)
    moved = np.frombuffer(room.data, value.dtype, value.size, offset=1).reshape(value.shape)
    moved[...] = value
    return moved


def other_numbers(lots: Lots, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array of the same shape in which some numbers, or all, are extreme."""
    other = value.copy()
    if not other.size or other.dtype == object:
        return other
    if other.dtype.kind == "f":
        extremes: tuple[Any, ...] = (math.nan, math.inf, -math.inf, 3e38, 0.0, -1.0)
    else:
        limits = np.iinfo(other.dtype)
        near = (limits.min, limits.max, 0, 1, 2, 3, min(other.size, limits.max), limits.max // 2)
        extremes = (*near, max(-1, limits.min))
    flat = other.reshape(-1)
    count = one(lots, (1, 2, flat.size))
    for at in lots.integers(flat.size, size=count):
        flat[at] = one(lots, extremes)
    return other
