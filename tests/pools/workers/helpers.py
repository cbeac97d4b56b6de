"""What several tests of worker processes need."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from sparring.processes import lifeline

NAMES = (
    *("obs", "mask", "seat", "role", "policy", "reward", "skipped", "terminated", "truncated"),
    *("final_game", "final_obs", "final_mask", "final_score", "final_policy", "final_length"),
    *("final_reason", "final_over"),
)


def copied(batch: Any) -> dict[str, Any]:
    """Everything that a batch says."""
    return {name: getattr(batch, name).copy() for name in NAMES}


def assert_same(one: Any, other: Any) -> None:
    """Compare batches, or copies of them."""
    one, other = (given if isinstance(given, dict) else copied(given) for given in (one, other))
    for name in NAMES:
        np.testing.assert_array_equal(one[name], other[name], name)


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be fetched does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pids: list[int], within_s: float = 20.0) -> bool:
    """Whether these processes end soon."""
    until = time.monotonic() + within_s
    while any(map(alive, pids)):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def stuck(pids: list[int], within_s: float = 20.0) -> bool:
    """Whether these processes come to hear no SIGTERM, as `hostile_envs.hold` has it."""
    until, bit = time.monotonic() + within_s, 1 << (signal.SIGTERM - 1)

    def deaf(pid: int) -> bool:
        status = Path(f"/proc/{pid}/status").read_text()
        (mask,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigBlk")]
        return bool(int(mask, 16) & bit)

    while not all(map(deaf, pids)):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def open_files() -> int:
    """How many files this process has open, and the one pipe that tells others of its end."""
    lifeline()
    return len(list(Path("/proc/self/fd").iterdir()))


def memory_maps() -> int:
    """How many pieces of nameless shared memory this process has mapped."""
    return Path("/proc/self/maps").read_text().count("memfd:sparring")
