"""Measurements of this machine in a small cache file; if it is deleted, they are taken again."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from sparring.machine import cores, cpu_model, load_average
from sparring.store.files import remove_stale_files, write_atomic

FORMAT = 2
"""Raised when the meaning of entries changes; files of another format are ignored."""
CACHE = "SPARRING_CACHE"
"""Environment variable that names another cache folder."""

CacheEntry = dict[str, Any]
"""Measured numbers by name, and when they were measured."""

_unwritten: dict[Path, dict[str, CacheEntry]] = {}
"""Entries that could not be written: this process does not measure them again."""


def folder() -> Path:
    """Return the cache folder: $SPARRING_CACHE, or sparring in the user's cache folder."""
    if named := os.environ.get(CACHE, ""):
        return Path(named)
    with suppress(RuntimeError):  # the user has no home folder
        return Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache") / "sparring"
    return Path("/nonexistent")


def file() -> Path:
    return folder() / f"machine-{short_hash(processor(), os.cpu_count())}.json"


def has_cache_file() -> bool:
    """Whether any measurements exist; does not read them."""
    return any(path.parent == folder() for path in _unwritten) or any(
        folder().glob("machine-*.json")
    )


@cache
def processor() -> str:
    return cpu_model()


def short_hash(*facts: Any) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:10]


class MeasurementCache:
    """Entries by name, as read from the file."""

    def __init__(self, path: Path | None = None) -> None:
        """Read a file (default: this machine's); a damaged or old one has no entries."""
        self.path = path or file()
        self.entries = read(self.path) | _unwritten.get(self.path, {})

    def numbers(self, name: str, *keys: str) -> list[float] | None:
        """Return numbers of an entry; None if one is missing, not finite or not positive."""
        values = [self.entries.get(name, {}).get(key) for key in keys]
        numbers = [float(x) for x in values if isinstance(x, int | float) and math.isfinite(x)]
        return numbers if len(numbers) == len(keys) and min(numbers, default=0) > 0 else None

    def put(self, name: str, **values: Any) -> None:
        """Store an entry, in the file too if that can be written."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = {**values, "at": now, "load": load_average() or 0.0}
        self.entries[name] = entry
        self._write({**read(self.path), name: entry}, {name: entry})

    def measured_under_load(self, name: str) -> bool:
        """Whether the machine was busy when the entry was measured, and is not busy now."""
        load = self.entries.get(name, {}).get("load", 0.0)
        busy = 0.5 * cores()
        return isinstance(load, int | float) and load > busy >= (load_average() or 0.0)

    def drop(self, names: Iterable[str]) -> None:
        """Remove entries, so that they are measured again."""
        dropped = set(names) & set(self.entries)
        for name in dropped:
            del self.entries[name]
            _unwritten.get(self.path, {}).pop(name, None)
        left = {name: entry for name, entry in read(self.path).items() if name not in dropped}
        if dropped:
            self._write(left, {})

    def _write(self, entries: dict[str, CacheEntry], new: dict[str, CacheEntry]) -> None:
        """Replace the file. Entries that another process writes meanwhile are lost."""
        content = {
            "format": FORMAT,
            "machine": {"cpu": processor(), "cores": os.cpu_count()},
            "entries": entries,
        }
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            remove_stale_files(self.path.parent)
            write_atomic(self.path, json.dumps(content, indent=1, allow_nan=False).encode() + b"\n")
        except OSError:
            _unwritten.setdefault(self.path, {}).update(new)


def read(path: Path) -> dict[str, CacheEntry]:
    """Return the entries of a file; none if it is missing, damaged or of another format."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return {}
    entries = content.get("entries")
    if not isinstance(entries, dict):
        return {}
    return {name: entry for name, entry in entries.items() if isinstance(entry, dict)}
