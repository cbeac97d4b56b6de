"""State, observation and rewards as the interpreter sees them.

Numbers read from them are Python's own, so that sums of small types cannot overflow: compiled code
computes with 64 bits, too. What is written has to fit the declared type.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import suggestion


def memory(address: int, dtype: Any, count: int = 1) -> npt.NDArray[Any]:
    """View memory of the core as an array."""
    kind = np.dtype(dtype)
    raw = (ctypes.c_char * (kind.itemsize * count)).from_address(address)
    return np.frombuffer(raw, kind, count)


class Cells(np.ndarray[Any, Any]):
    """An array whose elements are read as Python numbers."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return found.item() if isinstance(found, np.generic) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        check_kind(self.dtype, value)
        super().__setitem__(key, value)

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self[i]


def check_kind(dtype: np.dtype[Any], value: Any) -> None:
    """Refuse a fraction where whole numbers are declared: it would be cut off silently."""
    if dtype.kind in "iu" and (
        isinstance(value, float | np.floating)
        or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
    ):
        raise TypeError(f"{value!r} is a float, {dtype} holds whole numbers; use // or int(...)")


class Fields:
    """Named fields of a record: `state.board[2, 3] = 1`, `state.seat`."""

    __slots__ = ("_arrays", "_fields", "_row")

    def __init__(self, row: npt.NDArray[Any], *, writable: bool = True) -> None:
        """row: an array of one record."""
        if not writable:
            row = row.view()
            row.flags.writeable = False
        object.__setattr__(self, "_row", row)
        object.__setattr__(self, "_fields", row.dtype.fields or {})
        object.__setattr__(self, "_arrays", {})

    def __getattr__(self, name: str) -> Any:
        array = self._arrays.get(name)
        if array is None:
            array = self._arrays[name] = self._array(name)
        return array if isinstance(array, Cells) else array.item()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "over":
            raise AttributeError("step ends a game by its answer; state.over is only read")
        field = self._array(name)
        check_kind(field.dtype, value)
        field[...] = value

    def _array(self, name: str) -> npt.NDArray[Any]:
        """View a field: as Cells, or as an array of one number."""
        if name not in self._fields:
            raise AttributeError(f"there is no field {name!r}{suggestion(name, self._fields)}")
        field: npt.NDArray[Any] = self._row[name]
        return field if field.ndim == 1 else field[0].view(Cells)

    def __repr__(self) -> str:
        return " ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)


def fields_at(address: int, dtype: np.dtype[Any], *, writable: bool = True) -> Fields:
    return Fields(memory(address, dtype), writable=writable)


def cells_at(address: int, dtype: Any, count: int, *, writable: bool = True) -> Cells:
    found = memory(address, dtype, count).view(Cells)
    found.flags.writeable = writable
    return found
