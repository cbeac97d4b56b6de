"""LRU cache of objects read from files, limited by memory."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from sparring.machine import format_bytes
from sparring.store.files import read_regular

T = TypeVar("T")
MAX_BYTES = 64 * 2**30
"""Largest file that is read."""
Signature = tuple[tuple[int, int, int], ...]
"""Inode, size and modification time of every file."""


@dataclass(frozen=True)
class CacheStatistics:
    """Counters of a cache."""

    hits: int
    misses: int
    evictions: int
    entries: int
    bytes: int
    max_bytes: int

    def __str__(self) -> str:
        memory = f"{format_bytes(self.bytes)} of {format_bytes(self.max_bytes)}"
        return (
            f"{self.entries} in memory ({memory}), {self.hits} hits, {self.misses} misses, "
            f"{self.evictions} evictions"
        )


@dataclass
class CacheEntry(Generic[T]):
    """A cached value and the state of its files."""

    value: T
    signature: Signature
    content: str
    bytes: int


class FileCache(Generic[T]):
    """Loads a value once, until its files change or it is evicted. Thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._entries: OrderedDict[Hashable, CacheEntry[T]] = OrderedDict()
        self._lock = threading.RLock()
        self._hits = self._misses = self._evictions = 0

    def get(
        self,
        key: Hashable,
        files: Sequence[Path],
        load: Callable[[], T],
        size: Callable[[T], int],
    ) -> T:
        """Return the value of a key; load it if it is missing or its files changed.

        A file with a new date but the same content is not loaded again. A value that is larger
        than the whole cache is returned without being cached.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry and self._is_unchanged(entry, files):
                self._entries.move_to_end(key)
                self._hits += 1
                return entry.value
            self._entries.pop(key, None)
            self._misses += 1
            # Before loading, so that a file which changes meanwhile is noticed next time.
            signature, content = signature_of(files), content_of(files)
            value = load()
            if signature and size(value) <= self.max_bytes:
                self._entries[key] = CacheEntry(value, signature, content, size(value))
                self._evict()
            return value

    def _is_unchanged(self, entry: CacheEntry[T], files: Sequence[Path]) -> bool:
        signature = signature_of(files)
        if signature == entry.signature:
            return True
        if not signature or content_of(files) != entry.content:
            return False
        entry.signature = signature
        return True

    def _evict(self) -> None:
        while self.bytes > self.max_bytes:
            self._entries.popitem(last=False)
            self._evictions += 1

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self._entries.values())

    def clear(self) -> None:
        """Drop all entries; counters stay."""
        with self._lock:
            self._entries.clear()

    @property
    def statistics(self) -> CacheStatistics:
        with self._lock:
            counts = self._hits, self._misses, self._evictions
            return CacheStatistics(*counts, len(self._entries), self.bytes, self.max_bytes)


def signature_of(files: Sequence[Path]) -> Signature:
    """Return a cheap signature that changes with the files; () if one is missing."""
    try:
        stats = [path.stat() for path in files]
    except OSError:
        return ()
    return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


def content_of(files: Sequence[Path]) -> str:
    """Return the hash of all contents; "" if a file cannot be read."""
    digest = hashlib.sha256()
    try:
        for path in files:
            digest.update(hashlib.sha256(read_regular(path, MAX_BYTES)).digest())
    except OSError:
        return ""
    return digest.hexdigest()
