"""Cache of loaded policies, one per process; a changed file is loaded again."""

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
"""Size of the cache of policies."""
WEIGHTS_FILE = "net.safetensors"


class PolicyCache:
    """Loads policies and keeps the most recently used ones."""

    def __init__(self, max_bytes: int = MEMORY_BYTES) -> None:
        self._cache: FileCache[dict[str, Policy]] = FileCache(max_bytes)
        """Policies of every network by name; they share its weights."""

    def get(
        self, path: str | Path, *, name: str = "", device: str = "cpu", threads: int = 1
    ) -> Policy:
        """Return the policy that `load_policy` would load; all callers share its network.

        For a run it is the current best checkpoint. A replaced file is loaded again.
        """
        found = find_policy(path)
        path = resolve_checkpoint(found)
        named = self._cache.get(
            (path.resolve(), device, threads),
            [path] if path.is_file() else [path / MANIFEST, path / WEIGHTS_FILE],
            lambda: {"": load_policy(found, device=device, threads=threads)},
            lambda named: tensor_bytes(named[""].net.state_dict()),
        )
        if name not in named:
            policy = copy.copy(named[""])
            policy.name = name
            named[name] = policy
        return named[name]

    def clear(self) -> None:
        self._cache.clear()

    @property
    def statistics(self) -> CacheStatistics:
        return self._cache.statistics


def resolve_checkpoint(path: Path) -> Path:
    """Return the best or else the newest checkpoint of a run; other paths unchanged."""
    if path.is_file() or (path / MANIFEST).is_file():
        return path
    best = best_checkpoint(path)
    numbers = checkpoint_numbers(path / CHECKPOINTS)
    if best is None and not numbers:
        return path
    return path / CHECKPOINTS / f"{numbers[-1] if best is None else best:08d}"


PROCESS_CACHE = PolicyCache()


def cached_policy(
    path: str | Path, *, name: str = "", device: str = "cpu", threads: int = 1
) -> Policy:
    """Return a policy from the cache of this process; load it if it is not there."""
    return PROCESS_CACHE.get(path, name=name, device=device, threads=threads)
