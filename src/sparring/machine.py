"""Facts about the machine: what a number was measured on, and what fits into its memory."""

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

UNNOTICED = 256 * 2**20
"""Bytes that are asked for without a look at what is free."""
MAX_THREADS: int = _native.MAX_THREADS
CGROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def may_have_gpu() -> bool:
    """Whether a GPU's driver is installed; without one there is no need to ask torch for a GPU."""
    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return Path("/dev/kfd").exists()  # AMD's, which torch calls cuda as well
    return True


def free_memory() -> int:
    """Return the bytes that this process may still use, within the limits of its container."""
    facts = Path("/proc/meminfo")
    groups = (cgroup_memory(CGROUPS), cgroup_memory(CGROUPS / "memory"))
    known = [limit for limit in groups if limit is not None]
    if facts.exists():
        lines = dict(line.split(":") for line in facts.read_text().splitlines() if ":" in line)
        known.append(int(lines["MemAvailable"].split()[0]) * 1024)
    else:
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(known)


def cgroup_memory(folder: Path) -> int | None:
    """Return what a control group leaves free; None without a limit. Both versions of them."""
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
    name: str, count: int, each: int, what: str, *, free: int | None = None
) -> None:
    """Refuse `count` games that need `each` bytes if they do not fit, before anything is made.

    name: the setting that says how many. what: what takes the room, for the error.
    free: bytes there are; None asks the machine.
    """
    needed = count * each
    if needed < UNNOTICED and free is None:
        return
    free = free_memory() if free is None else free
    if needed > free:
        raise ConfigError(
            f"{name}={count}: {what} would need {show_size(needed)} of memory, "
            f"{show_size(free)} are free; at most {free // each} games fit"
        )


def show_size(count: float) -> str:
    """Return bytes as a person reads them."""
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
    """Return the processor's name."""
    named = ask("lscpu") or ""
    facts = Path("/proc/cpuinfo")
    for line in [*named.splitlines(), *(facts.read_text().splitlines() if facts.exists() else [])]:
        if line.lower().startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@cache
def git_commit() -> str | None:
    """Return the commit of a source checkout, "+" after it if files changed; None elsewhere.

    Asked once: it is about the sources that this process runs.
    """
    git = ("git", "-C", str(Path(sparring.__file__).resolve().parent))
    # A wheel in somebody else's repository is not under its version control.
    if ask(*git, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = ask(*git, "rev-parse", "--short=12", "HEAD")
    return f"{commit}+" if commit and ask(*git, "status", "--porcelain", "-uno") else commit


def ask(*command: str) -> str | None:
    """Return what a program prints, None if it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def load_average() -> float | None:
    """Return how many processes wanted a core over the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def memory_used() -> int | None:
    """Return how many bytes of memory this process holds, None where nobody tells."""
    facts = Path("/proc/self/statm")
    if not facts.exists():
        return None
    return int(facts.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def warn_if_busy(load: float | None) -> None:
    """Warn when other work shares the cores."""
    if load is not None and load > max(0.5, 0.1 * cores()):
        warnings.warn(
            f"load average {load:g} on {cores()} cores: other work seems to be running; "
            "rates will be low and vary, compare ratios instead",
            SparringWarning,
            stacklevel=2,
        )


def machine_facts() -> dict[str, Any]:
    """Return what a measurement depends on."""
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
