"""Facts about the machine, so that a number says where it was measured."""

from __future__ import annotations

import os
import platform
import subprocess
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import sparring
from sparring.errors import SparringWarning


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_model() -> str:
    """Return the processor's name."""
    named = ask("lscpu") or ""
    facts = Path("/proc/cpuinfo")
    for line in [*named.splitlines(), *(facts.read_text().splitlines() if facts.exists() else [])]:
        if line.lower().startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def git_commit() -> str | None:
    """Return the commit of a source checkout, "+" after it if files changed; None elsewhere."""
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
