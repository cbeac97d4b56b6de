"""Facts about the machine: what a measurement depends on, and how much memory is free."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import warnings
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import sparring
from sparring import _native
from sparring.errors import ConfigError, SparringWarning

UNCHECKED_BYTES = 256 * 2**20
"""Allocations below this size are not checked against free memory."""
UNKNOWN_BYTES = 4 * 2**30
"""Free memory of a machine that does not tell, such as Windows."""
MAX_THREADS: int = _native.MAX_THREADS
CGROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def may_have_gpu() -> bool:
    """Whether a GPU driver is installed; without one torch need not be asked for a GPU."""
    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return Path("/dev/kfd").exists()  # AMD's driver: torch calls it cuda, too
    return True


def free_memory() -> int:
    """Bytes that this process may still allocate, within the limits of its container."""
    meminfo = Path("/proc/meminfo")
    groups = (cgroup_memory(CGROUPS), cgroup_memory(CGROUPS / "memory"))
    known = [limit for limit in groups if limit is not None]
    if meminfo.exists():
        lines = dict(line.split(":") for line in meminfo.read_text().splitlines() if ":" in line)
        known.append(int(lines["MemAvailable"].split()[0]) * 1024)
    elif hasattr(os, "sysconf"):
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(known, default=UNKNOWN_BYTES)


def cgroup_memory(folder: Path) -> int | None:
    """Free bytes within a control group (version 1 or 2); None without a limit."""
    try:
        names = {path.name for path in folder.iterdir()}
        new = "memory.max" in names
        limit = (folder / ("memory.max" if new else "memory.limit_in_bytes")).read_text()
        used = (folder / ("memory.current" if new else "memory.usage_in_bytes")).read_text()
        stat = (folder / "memory.stat").read_text().splitlines()
        cached = dict(line.split() for line in stat).get("inactive_file", "0")
        return max(int(limit) - int(used) + int(cached), 0)
    except (OSError, ValueError):  # no such group, or "max"
        return None


def check_memory_budget(
    name: str, count: int, each: int, what: str, *, free: int | None = None, unit: str = "games"
) -> None:
    """Refuse `count` games of `each` bytes if they do not fit into memory, before allocation.

    name: the setting with the number of games. what: what needs the memory, for the error.
    unit: what is counted, if not games.
    free: free bytes; None asks the machine.
    """
    needed = count * each
    if needed < UNCHECKED_BYTES and free is None:
        return
    free = free_memory() if free is None else free
    if needed > free:
        raise ConfigError(
            f"{name}={count}: {what} would need {format_bytes(needed)} of memory, "
            f"{format_bytes(free)} are free; at most {free // each} {unit} fit"
        )


def format_bytes(count: float) -> str:
    """Format a number of bytes: 1.5 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} PiB"


def check_threads(threads: int) -> int:
    """Refuse a number of threads that no machine has."""
    if not 1 <= threads <= MAX_THREADS:
        raise ConfigError(
            f"threads={threads} must be 1..{MAX_THREADS}; this machine has {cores()} cores"
        )
    return threads


@cache
def cpu_model() -> str:
    output = run_program("lscpu") or ""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    for line in [*output.splitlines(), *lines]:
        if line.lower().startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@cache
def git_commit() -> str | None:
    """Commit of a source checkout, with "+" if files have changed; None elsewhere.

    Cached: it describes the sources that this process runs.
    """
    git = ("git", "-C", str(Path(sparring.__file__).resolve().parent))
    # A wheel installed inside another repository is not under its version control.
    if run_program(*git, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = run_program(*git, "rev-parse", "--short=12", "HEAD")
    changed = commit and run_program(*git, "status", "--porcelain", "-uno")
    return f"{commit}+" if changed else commit


def run_program(*command: str) -> str | None:
    """Return what a program prints; None if it is not installed or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def load_average() -> float | None:
    """Mean number of processes that wanted a core over the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def memory_used() -> int | None:
    """Resident bytes of this process; None where /proc is missing."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return None
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def warn_if_busy(load: float | None) -> None:
    """Warn if other programs use the cores."""
    if load is not None and load > max(0.5, 0.1 * cores()):
        warnings.warn(
            f"load average {load:g} on {cores()} cores: other work seems to be running; "
            "rates will be low and vary, compare ratios instead",
            SparringWarning,
            stacklevel=2,
        )


def machine_info() -> dict[str, Any]:
    """What a measurement depends on: processor, versions, commit, date, load."""
    return {
        "cpu": cpu_model(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "sparring": sparring.__version__,
        "commit": git_commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_average": load_average(),
    }


def thread_counts(most: int) -> list[int]:
    """Return 1, 2, 4, ... up to the number of cores."""
    return sorted({min(2**power, most) for power in range(most.bit_length() + 1)})
