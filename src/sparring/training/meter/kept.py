"""What was measured once, kept in a small file of this machine; deleting it loses nothing."""

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

FORMAT = 1
"""Raised when what entries mean changes; files of before are measured again."""
CACHE = "SPARRING_CACHE"
"""The environment variable that names another folder."""

Entry = dict[str, Any]
"""What was measured: numbers by name, and when."""

_unwritten: dict[Path, dict[str, Entry]] = {}
"""What could not be written: this process measures it once, not again and again."""


def folder() -> Path:
    """Return where files are kept: $SPARRING_CACHE, or sparring in the user's cache folder."""
    if named := os.environ.get(CACHE, ""):
        return Path(named)
    with suppress(RuntimeError):  # a user without a home
        return Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache") / "sparring"
    return Path("/nonexistent")


def file() -> Path:
    return folder() / f"machine-{digest(processor(), os.cpu_count())}.json"


def anything_kept() -> bool:
    """Whether there is a file at all; a quick look."""
    here = folder()
    return any(path.parent == here for path in _unwritten) or any(here.glob("machine-*.json"))


@cache
def processor() -> str:
    return cpu_model()


def digest(*facts: Any) -> str:
    """A short name for what would be too long to be one."""
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:10]


class Kept:
    """Entries by name, as the file had them when it was read."""

    def __init__(self, path: Path | None = None) -> None:
        """Read a file, that of this machine if none is named; a damaged or old one is empty."""
        self.path = path or file()
        self.entries = read(self.path) | _unwritten.get(self.path, {})

    def numbers(self, name: str, *wanted: str) -> list[float] | None:
        """Numbers of an entry, None if one is missing or no rate that a machine could have."""
        found = [self.entries.get(name, {}).get(key) for key in wanted]
        numbers = [
            float(one) for one in found if isinstance(one, int | float) and math.isfinite(one)
        ]
        return numbers if len(numbers) == len(wanted) and min(numbers, default=0) > 0 else None

    def put(self, name: str, **found: Any) -> None:
        """Keep an entry, in the file if that can be written."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = {**found, "at": now, "load": load_average() or 0.0}
        self.entries[name] = entry
        self._write({**read(self.path), name: entry}, {name: entry})

    def doubtful(self, name: str) -> bool:
        """Whether an entry is of a busy moment, and this is a better one."""
        load = self.entries.get(name, {}).get("load", 0.0)
        busy = 0.5 * cores()
        return isinstance(load, int | float) and load > busy >= (load_average() or 0.0)

    def drop(self, names: Iterable[str]) -> None:
        """Forget entries, so that they are measured again."""
        doomed = set(names) & set(self.entries)
        for name in doomed:
            del self.entries[name]
            _unwritten.get(self.path, {}).pop(name, None)
        left = {name: entry for name, entry in read(self.path).items() if name not in doomed}
        if doomed:
            self._write(left, {})

    def _write(self, entries: dict[str, Entry], new: dict[str, Entry]) -> None:
        """Replace the file; what another process wrote in this moment is measured again."""
        told = {
            "format": FORMAT,
            "machine": {"cpu": processor(), "cores": os.cpu_count()},
            "kept": entries,
        }
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            remove_stale_files(self.path.parent)
            write_atomic(self.path, json.dumps(told, indent=1, allow_nan=False).encode() + b"\n")
        except OSError:
            _unwritten.setdefault(self.path, {}).update(new)


def read(path: Path) -> dict[str, Entry]:
    """Return the entries of a file; none if it is not there, damaged or of another format."""
    try:
        told = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        return {}
    kept = told.get("kept")
    if not isinstance(kept, dict):
        return {}
    return {name: entry for name, entry in kept.items() if isinstance(entry, dict)}
