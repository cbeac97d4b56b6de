"""What this process and those that work for it use: time of cores, and memory."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sparring.machine import memory_used

PROC = Path("/proc")
PARENT, USER_S, SYSTEM_S, PAGES = 1, 11, 12, 21
"""Columns of /proc/PID/stat behind the name."""


def helpers() -> list[int]:
    """Return the processes below this one, such as workers and actors; none where nobody tells."""
    parents = {pid: int(told[PARENT]) for pid in numbers() if (told := stat_of(pid))}
    found, fresh = set[int](), {os.getpid()}
    while fresh:
        fresh = {pid for pid, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return sorted(found)


def numbers() -> list[int]:
    """Return all processes that can be seen."""
    if sys.platform != "linux":
        return []
    return [int(path.name) for path in PROC.iterdir() if path.name.isdecimal()]


def stat_of(pid: int) -> list[str]:
    """Return what the system tells about a process, nothing if it is gone."""
    with suppress(OSError):
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return []


def cpu_s(pids: Sequence[int] = ()) -> float:
    """Return the time that this process and some others have had on cores so far."""
    tick = os.sysconf("SC_CLK_TCK")
    told = [stat for pid in pids if (stat := stat_of(pid))]
    return time.process_time() + sum(int(s[USER_S]) + int(s[SYSTEM_S]) for s in told) / tick


def memory(pids: Sequence[int] = ()) -> int:
    """Return the bytes that this process and some others hold, 0 where nobody tells."""
    page = os.sysconf("SC_PAGE_SIZE")
    return (memory_used() or 0) + sum(int(s[PAGES]) * page for pid in pids if (s := stat_of(pid)))


def trim() -> None:
    """Give memory back to the system that was let go of, so that what follows is seen to grow."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).malloc_trim(0)
