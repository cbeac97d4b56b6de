"""What a replay keeps of decisions: columns written round and round, and saved in pieces."""

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
"""Places of a ring, and rows of a rollout, are linked by numbers of 32 bits."""
MIN_ROLLOUTS = 2
"""So many rollouts a ring must hold, or decisions would be gone before they are learned from."""


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
    return sum(
        np.dtype(kind).itemsize * int(np.prod(shape, dtype=np.int64))
        for kind, shape in columns_of(rules, row_bytes, records=records).values()
    )


def mask_words(actions: int) -> int:
    """Words of 64 bits that hold a mask."""
    return -(-actions // 64)


def check_capacity(capacity: int, rows: int) -> None:
    """Refuse a ring that rollouts of so many rows would overrun, or whose places have no number."""
    if capacity < MIN_ROLLOUTS * rows:
        raise ConfigError(
            f"replay.capacity={capacity} is too small: a rollout brings up to {rows} decisions, "
            f"at least {MIN_ROLLOUTS * rows} must fit; raise it, or make collect.games or "
            "collect.steps smaller"
        )
    if capacity > MAX_PLACES:
        raise ConfigError(f"replay.capacity={capacity} is too large, at most {MAX_PLACES}")


class RingBuffer:
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
        return self.columns[name]

    def write(self, first: int, rows: Mapping[str, npt.NDArray[Any]]) -> None:
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


MAX_ROWS = 8192
"""Of a segment."""
MIN_SEGMENTS = 16
"""Into so many a small ring is divided."""


class RingColumn(Protocol):
    """A column: rows are read by place."""

    @property
    def dtype(self) -> Any:
        """Of its numbers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The first is the capacity."""

    def __getitem__(self, at: npt.NDArray[np.int64], /) -> npt.NDArray[Any]:
        """Copy the rows at these places."""


class RingLike(Protocol):
    """A ring on the host, or one on a GPU."""

    capacity: int

    @property
    def columns(self) -> Mapping[str, RingColumn]:
        """By name."""

    def write(self, first: int, rows: Mapping[str, npt.NDArray[Any]]) -> None:
        """Put rows at serial numbers from `first` on."""


class Segments:
    """Saves and loads the rows of a ring; stretches that never change again are written once.

    A segment is a stretch of serial numbers. It is sealed once all of it was stored and none of its
    decisions is still open. Its name says where it begins and what is in it, so that two runs that
    part ways never take each other's segments for their own.
    """

    def __init__(self, ring: RingLike) -> None:
        self.ring = ring
        self.rows = max(min(MAX_ROWS, ring.capacity // MIN_SEGMENTS), 1)
        """Of every segment."""
        self._names: dict[int, str] = {}

    def sealed(self, first: int, head: int, pending: npt.NDArray[np.int64]) -> dict[int, str]:
        """Names of segments by number; all lie between two serial numbers."""
        waiting = {int(serial) // self.rows for serial in pending[pending >= first]}
        numbers = range(-(-first // self.rows), head // self.rows)
        found = {}
        for number in numbers:
            if number not in waiting:
                found[number] = self._names.get(number) or self._name(number)
        self._names = found
        return found

    def _name(self, number: int) -> str:
        digest = hashlib.blake2b(digest_size=10)
        for name, values in self._columns(number).items():
            digest.update(name.encode() + values.tobytes())
        return f"{number * self.rows:012d}-{digest.hexdigest()}"

    def _columns(self, number: int) -> dict[str, npt.NDArray[Any]]:
        return rows_between(self.ring, number * self.rows, self.rows)

    def readers(self, sealed: Mapping[int, str]) -> dict[str, Segment]:
        """What reads each of them, by name."""
        return {name: partial(self._read, number) for number, name in sealed.items()}

    def _read(self, number: int) -> dict[str, Tensor]:
        return tensors_of(self._columns(number))

    def loose(self, first: int, head: int, sealed: Mapping[int, str]) -> list[tuple[int, int]]:
        """Serial numbers that lie in no sealed segment, as stretches: first and count."""
        found: list[tuple[int, int]] = []
        for number in range(first // self.rows, -(-head // self.rows)):
            if number not in sealed:
                start = max(number * self.rows, first)
                found.append((start, min((number + 1) * self.rows, head) - start))
        return found

    def save(
        self, first: int, head: int, pending: npt.NDArray[np.int64]
    ) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Segment]]:
        """Copy the rows that lie in no sealed segment; and what reads the segments, by name."""
        sealed = self.sealed(first, head, pending)
        loose = self.loose(first, head, sealed)
        parts = [rows_between(self.ring, *stretch) for stretch in loose or [(head, 0)]]
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
        """Put back what was saved, from one serial number to another."""
        self._names = {}
        found = sum(put_rows(self.ring, first_of(n), rows, first) for n, rows in segments.items())
        done = 0
        for start, count in tensors["loose"].tolist():
            rows = {
                name: tensors[name][done : done + count]
                for name in self.ring.columns
                if name in tensors
            }
            found += put_rows(self.ring, start, rows, first)
            done += count
        if found != head - first:
            raise StateError(f"the checkpoint has {found} of the replay's {head - first} decisions")


def check_waiting(pending: Tensor, head: int) -> None:
    """Refuse serial numbers of open decisions that were never stored."""
    if len(pending) and not ((pending >= -1) & (pending < head)).all():
        raise StateError("the checkpoint's replay waits for decisions that it never had")


def first_of(name: str) -> int:
    """The serial number at which a segment begins."""
    return int(name.partition("-")[0])


def rows_between(ring: RingLike, first: int, count: int) -> dict[str, npt.NDArray[Any]]:
    """Copy rows, with links as distances: these are the same in a ring of any size."""
    at = np.arange(first, first + count) % ring.capacity
    found = {name: values[at] for name, values in ring.columns.items()}
    found["next"] = ((found["next"] - at) % ring.capacity).astype(np.int32)
    return found


def put_rows(ring: RingLike, first: int, columns: Mapping[str, Tensor], oldest: int) -> int:
    """Put rows back at serial numbers from `first` on, none below `oldest`; return how many."""
    skipped = max(oldest - first, 0)
    nothing = torch.zeros(len(columns["end"]), dtype=torch.int32)  # older ones kept no records
    arrays = {
        name: array_of(columns.get(name, nothing) if name == RECORD else columns[name], kept.dtype)
        for name, kept in ring.columns.items()
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
    """Arrays as files hold them: unsigned numbers by their bits."""
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
