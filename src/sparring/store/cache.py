"""Policies that were loaded already: once per process, as long as their files stay the same."""

from __future__ import annotations

import copy
from pathlib import Path

from sparring.nets.policy import Policy
from sparring.store.archive import tensor_bytes
from sparring.store.file_cache import CacheStatistics, FileCache
from sparring.store.folders import CHECKPOINTS, MANIFEST
from sparring.store.lookup import find_policy
from sparring.store.manifest import checkpoint_numbers
from sparring.store.policies import best_checkpoint, load_policy

MEMORY_BYTES = 2**30
"""What the policies of a process may take."""
WEIGHTS_FILE = "net.safetensors"


class PolicyCache:
    """Loads policies, weights only, and keeps those that were used last."""

    def __init__(self, max_bytes: int = MEMORY_BYTES) -> None:
        self._shelf: FileCache[dict[str, Policy]] = FileCache(max_bytes)
        """Of every network one policy by name; they share its weights."""

    def get(
        self, path: str | Path, *, name: str = "", device: str = "cpu", threads: int = 1
    ) -> Policy:
        """Return the policy that `load_policy` would load; its network is shared by all who ask.

        A run that has a better checkpoint by now gives that one, and a file that was replaced is
        loaded again.
        """
        found = find_policy(path)
        place = resolve_checkpoint(found)
        named = self._shelf.get(
            (place.resolve(), device, threads),
            [place] if place.is_file() else [place / MANIFEST, place / WEIGHTS_FILE],
            lambda: {"": load_policy(found, device=device, threads=threads)},
            lambda named: tensor_bytes(named[""].net.state_dict()),
        )
        if name not in named:
            called = copy.copy(named[""])
            called.name = name
            named[name] = called
        return named[name]

    def clear(self) -> None:
        """Give all policies up."""
        self._shelf.clear()

    @property
    def statistics(self) -> CacheStatistics:
        """How often a policy was in memory when it was asked for; as text, one line."""
        return self._shelf.statistics


def resolve_checkpoint(place: Path) -> Path:
    """Return the checkpoint that a run stands for: the best, or the newest; others as they are."""
    if place.is_file() or (place / MANIFEST).is_file():
        return place
    best = best_checkpoint(place)
    there = checkpoint_numbers(place / CHECKPOINTS)
    if best is None and not there:
        return place
    return place / CHECKPOINTS / f"{there[-1] if best is None else best:08d}"


PROCESS_CACHE = PolicyCache()
"""That of this process."""


def cached_policy(
    path: str | Path, *, name: str = "", device: str = "cpu", threads: int = 1
) -> Policy:
    """Load a policy, or take it from memory if this process has it already."""
    return PROCESS_CACHE.get(path, name=name, device=device, threads=threads)
