"""What was read from files, kept in memory up to a bound; the least used goes first."""

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
"""Of the largest file that is read."""
Signature = tuple[tuple[int, int, int], ...]
"""Of every file: inode, size and time of the last change."""


@dataclass(frozen=True)
class CacheStatistics:
    """How well a shelf does."""

    hits: int
    """Asked for and in memory."""
    misses: int
    """Asked for and read from files."""
    evictions: int
    """Given up to stay within the bound."""
    held: int
    bytes: int
    max_bytes: int

    def __str__(self) -> str:
        room = f"{format_bytes(self.bytes)} of {format_bytes(self.max_bytes)}"
        return (
            f"{self.held} in memory ({room}), {self.hits} found there, {self.misses} read, "
            f"{self.evictions} given up"
        )


@dataclass
class CacheEntry(Generic[T]):
    """A thing, and the files that it came from."""

    thing: T
    signature: Signature
    content: str
    bytes: int


class FileCache(Generic[T]):
    """Reads a thing once, until its files change or others need the room. Threads may share it."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._held: OrderedDict[Hashable, CacheEntry[T]] = OrderedDict()
        self._lock = threading.RLock()
        self._hits = self._misses = self._evictions = 0

    def get(
        self,
        key: Hashable,
        files: Sequence[Path],
        read: Callable[[], T],
        size: Callable[[T], int],
    ) -> T:
        """Return what is kept under a key; it is read if it is not here or its files changed.

        A file whose content is the same though its date is another one is not read again. What is
        larger than the whole shelf is handed out and not kept.
        """
        with self._lock:
            held = self._held.get(key)
            if held and self._unchanged(held, files):
                self._held.move_to_end(key)
                self._hits += 1
                return held.thing
            self._held.pop(key, None)
            self._misses += 1
            # Before the thing itself: a file that changes meanwhile is noticed the next time.
            signature, content = signature_of(files), content_of(files)
            thing = read()
            if signature and size(thing) <= self.max_bytes:
                self._held[key] = CacheEntry(thing, signature, content, size(thing))
                self._make_room()
            return thing

    def _unchanged(self, held: CacheEntry[T], files: Sequence[Path]) -> bool:
        signature = signature_of(files)
        if signature == held.signature:
            return True
        if not signature or content_of(files) != held.content:
            return False
        held.signature = signature
        return True

    def _make_room(self) -> None:
        while self.bytes > self.max_bytes:
            self._held.popitem(last=False)
            self._evictions += 1

    @property
    def bytes(self) -> int:
        """What is kept takes so much memory."""
        return sum(held.bytes for held in self._held.values())

    def clear(self) -> None:
        """Give everything up; the counts stay."""
        with self._lock:
            self._held.clear()

    @property
    def statistics(self) -> CacheStatistics:
        """How often what was asked for was here."""
        with self._lock:
            counts = self._hits, self._misses, self._evictions
            return CacheStatistics(*counts, len(self._held), self.bytes, self.max_bytes)


def signature_of(files: Sequence[Path]) -> Signature:
    """Return what changes whenever files do, which is quick to ask for; () if one is missing."""
    try:
        stats = [path.stat() for path in files]
    except OSError:
        return ()
    return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


def content_of(files: Sequence[Path]) -> str:
    """Return the hash of what is in files; "" if one cannot be read."""
    digest = hashlib.sha256()
    try:
        for path in files:
            digest.update(hashlib.sha256(read_regular(path, MAX_BYTES)).digest())
    except OSError:
        return ""
    return digest.hexdigest()
