"""Columns of a replay buffer: a ring of arrays, saved in segments."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.errors import ConfigError, StateError
from sparring.games.rules import Rules
from sparring.learn.learner import Segment
from sparring.learn.rollout import RECORD

MAX_PLACES = 2**31 - 1
"""Links between places of a ring, and between rows of a rollout, are int32."""
MIN_ROLLOUTS = 2
"""Rollouts that a ring must hold, or decisions would be overwritten before they are sampled."""


def columns_of(
    rules: Rules, row_bytes: int, *, records: bool = False
) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Return dtype and shape of every column. records: with the goal results of hindsight."""
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
    return sum(
        np.dtype(kind).itemsize * int(np.prod(shape, dtype=np.int64))
        for kind, shape in columns_of(rules, row_bytes, records=records).values()
    )


def mask_words(actions: int) -> int:
    return -(-actions // 64)


def check_capacity(capacity: int, rows: int) -> None:
    """Raise if the ring holds too few rollouts of so many rows, or is too large for int32."""
    if capacity < MIN_ROLLOUTS * rows:
        raise ConfigError(
            f"replay.capacity={capacity} is too small: a rollout brings up to {rows} decisions, "
            f"at least {MIN_ROLLOUTS * rows} must fit; raise it, or make collect.games or "
            "collect.steps smaller"
        )
    if capacity > MAX_PLACES:
        raise ConfigError(f"replay.capacity={capacity} is too large, at most {MAX_PLACES}")


class RingBuffer:
    """The columns. Serial number s is at place s % capacity until s + capacity overwrites it."""

    def __init__(
        self, rules: Rules, row_bytes: int, capacity: int, *, records: bool = False
    ) -> None:
        self.capacity = capacity
        self.columns: dict[str, npt.NDArray[Any]] = {
            name: np.empty((capacity, *shape), kind)
            for name, (kind, shape) in columns_of(rules, row_bytes, records=records).items()
        }
        self.columns["end"][:] = 0  # other columns are written before they are read

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def write(self, first: int, rows: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write rows at serial numbers from `first` on."""
        for name, values in rows.items():
            for places, source in self.slices(first, len(values)):
                self.columns[name][places] = values[source]

    def slices(self, first: int, count: int) -> Iterator[tuple[slice, slice]]:
        """Split a range of serial numbers at the end of the ring: slices of ring and range."""
        at, done = first % self.capacity, 0
        while done < count:
            part = min(count - done, self.capacity - at)
            yield slice(at, at + part), slice(done, done + part)
            at, done = 0, done + part


MAX_ROWS = 8192
"""Maximum rows of a segment."""
MIN_SEGMENTS = 16
"""Minimum segments of a ring."""


class RingColumn(Protocol):
    """A column of a ring on the host or a GPU."""

    @property
    def dtype(self) -> Any: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, at: npt.NDArray[np.int64], /) -> npt.NDArray[Any]:
        """Copy the rows at these places to the host."""


class RingLike(Protocol):
    """A ring on the host or a GPU."""

    capacity: int

    @property
    def columns(self) -> Mapping[str, RingColumn]: ...

    def write(self, first: int, rows: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write rows at serial numbers from `first` on."""


class Segments:
    """Saves and loads the rows of a ring; segments that cannot change any more are saved once.

    A segment is a range of serial numbers. It is sealed once all of it is stored and none of its
    transitions is pending. Its name has its first number and a hash of its contents, so that
    branches of a run do not mix up their segments.
    """

    def __init__(self, ring: RingLike) -> None:
        self.ring = ring
        self.rows = max(min(MAX_ROWS, ring.capacity // MIN_SEGMENTS), 1)
        """Rows of a segment."""
        self._names: dict[int, str] = {}

    def sealed(self, first: int, head: int, pending: npt.NDArray[np.int64]) -> dict[int, str]:
        """Return the names of sealed segments within [first, head), by number."""
        unsealed = {int(serial) // self.rows for serial in pending[pending >= first]}
        numbers = range(-(-first // self.rows), head // self.rows)
        result = {}
        for number in numbers:
            if number not in unsealed:
                result[number] = self._names.get(number) or self._name(number)
        self._names = result
        return result

    def _name(self, number: int) -> str:
        digest = hashlib.blake2b(digest_size=10)
        for name, values in self._columns(number).items():
            digest.update(name.encode() + values.tobytes())
        return f"{number * self.rows:012d}-{digest.hexdigest()}"

    def _columns(self, number: int) -> dict[str, npt.NDArray[Any]]:
        return rows_between(self.ring, number * self.rows, self.rows)

    def readers(self, sealed: Mapping[int, str]) -> dict[str, Segment]:
        """Return a function that reads each sealed segment, by name."""
        return {name: partial(self._read, number) for number, name in sealed.items()}

    def _read(self, number: int) -> dict[str, Tensor]:
        return tensors_of(self._columns(number))

    def loose(self, first: int, head: int, sealed: Mapping[int, str]) -> list[tuple[int, int]]:
        """Return the ranges (first, count) of serial numbers outside of sealed segments."""
        result: list[tuple[int, int]] = []
        for number in range(first // self.rows, -(-head // self.rows)):
            if number not in sealed:
                start = max(number * self.rows, first)
                result.append((start, min((number + 1) * self.rows, head) - start))
        return result

    def save(
        self, first: int, head: int, pending: npt.NDArray[np.int64]
    ) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Segment]]:
        """Copy the rows outside of sealed segments; return them and the readers of segments."""
        sealed = self.sealed(first, head, pending)
        loose = self.loose(first, head, sealed)
        parts = [rows_between(self.ring, *bounds) for bounds in loose or [(head, 0)]]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns["loose"] = np.array(loose, np.int64).reshape(-1, 2)
        return columns, self.readers(sealed)

    def load(
        self,
        tensors: Mapping[str, Tensor],
        segments: Mapping[str, Mapping[str, Tensor]],
        first: int,
        head: int,
    ) -> None:
        """Restore the rows of serial numbers [first, head)."""
        self._names = {}
        result = sum(
            write_rows(self.ring, first_of(n), rows, first) for n, rows in segments.items()
        )
        done = 0
        for start, count in tensors["loose"].tolist():
            rows = {
                name: tensors[name][done : done + count]
                for name in self.ring.columns
                if name in tensors
            }
            result += write_rows(self.ring, start, rows, first)
            done += count
        if result != head - first:
            raise StateError(
                f"the checkpoint has {result} of the replay's {head - first} decisions"
            )


def check_pending_serials(pending: Tensor, head: int) -> None:
    """Raise if a pending transition has a serial number that was never stored."""
    if len(pending) and not ((pending >= -1) & (pending < head)).all():
        raise StateError("the checkpoint's replay has pending transitions that it never stored")


def first_of(name: str) -> int:
    """The first serial number of a segment, read from its name."""
    return int(name.partition("-")[0])


def rows_between(ring: RingLike, first: int, count: int) -> dict[str, npt.NDArray[Any]]:
    """Copy rows with relative links, which hold in a ring of any capacity."""
    at = np.arange(first, first + count) % ring.capacity
    result = {name: values[at] for name, values in ring.columns.items()}
    result["next"] = ((result["next"] - at) % ring.capacity).astype(np.int32)
    return result


def write_rows(ring: RingLike, first: int, columns: Mapping[str, Tensor], oldest: int) -> int:
    """Write rows at serial numbers from `first` on, none below `oldest`; return their number."""
    skipped = max(oldest - first, 0)
    nothing = torch.zeros(len(columns["end"]), dtype=torch.int32)  # runs without hindsight
    arrays = {
        name: array_of(
            columns.get(name, nothing) if name == RECORD else columns[name], column.dtype
        )
        for name, column in ring.columns.items()
    }
    arrays = {name: array[skipped:] for name, array in arrays.items()}
    count = len(arrays["end"])
    if any(arrays[name].shape[1:] != ring.columns[name].shape[1:] for name in arrays):
        raise StateError("the checkpoint's replay is of another game or another memory")
    at = np.arange(first + skipped, first + skipped + count)
    arrays["next"] = ((at + arrays["next"]) % ring.capacity).astype(np.int32)
    ring.write(first + skipped, arrays)
    return count


def tensors_of(columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, Tensor]:
    """Return arrays as tensors for files; unsigned integers keep their bits."""
    signed = {np.dtype(np.uint32): np.int32, np.dtype(np.uint64): np.int64}
    return {
        name: torch.from_numpy(np.ascontiguousarray(values).view(signed.get(values.dtype)))
        if values.dtype in signed
        else torch.from_numpy(np.ascontiguousarray(values))
        for name, values in columns.items()
    }


def array_of(tensor: Tensor, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    array = tensor.numpy()
    return array.view(kind) if array.dtype.itemsize == kind.itemsize else array.astype(kind)
