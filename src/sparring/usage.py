"""CPU time and memory of processes, from /proc: this program's, and other programs'."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sparring.machine import cores, memory_used

PROC = Path("/proc")
STATE, PARENT, TIMES, PAGES = 0, 1, slice(11, 13), 21
"""Columns of /proc/PID/stat after the name."""
ENDED = ("Z", "X")
"""States of processes that have ended."""
EVERY_S = 5.0
"""Seconds between two reads of /proc, each of which takes some milliseconds."""
MIN_CORES = 0.5
"""Cores used by other programs, below which they are ignored."""
FULL = 0.9
"""Share of busy cores from which programs compete for them."""


def descendants(pid: int = 0) -> list[int]:
    """Return all descendants of a process, by default this one; none where /proc is missing."""
    started: dict[int, list[int]] = {}
    for folder in PROC.glob("[0-9]*"):
        if columns := read_stat(folder):
            started.setdefault(int(columns[PARENT]), []).append(int(folder.name))
    found: list[int] = []
    waiting = list(started.get(pid or os.getpid(), ()))
    while waiting:
        found.append(waiting.pop())
        waiting += started.get(found[-1], ())
    return sorted(found)


def read_stat(folder: Path) -> list[str]:
    """Columns of /proc/PID/stat after the name, which may contain blanks; [] if it has ended."""
    with suppress(OSError):
        return (folder / "stat").read_text().rpartition(")")[2].split()
    return []


def seconds_of(folder: Path) -> float:
    """CPU seconds of a process or thread so far, 0 if it has ended."""
    return sum(map(int, read_stat(folder)[TIMES])) / os.sysconf("SC_CLK_TCK")


def cpu_s(pids: Iterable[int] = ()) -> float:
    """CPU seconds of this process and some others so far."""
    return time.process_time() + sum(seconds_of(PROC / str(pid)) for pid in pids)


def thread_seconds(pids: Iterable[int]) -> dict[tuple[int, int], float]:
    """CPU seconds of every thread so far, by process and thread."""
    return {
        (pid, int(folder.name)): seconds_of(folder)
        for pid in pids
        for folder in (PROC / str(pid) / "task").glob("[0-9]*")
    }


def resident_bytes(pids: Iterable[int] = ()) -> int:
    """Memory of this process and some others, 0 where /proc is missing."""
    others = [columns for pid in pids if (columns := read_stat(PROC / str(pid)))]
    pages = sum(int(columns[PAGES]) for columns in others)
    return (memory_used() or 0) + pages * os.sysconf("SC_PAGE_SIZE")


def trim_heap() -> None:
    """Return freed memory to the system, so that later growth can be measured."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).malloc_trim(0)


@dataclass(frozen=True)
class Usage:
    """CPU seconds up to some moment."""

    processes: float
    """Of the given processes."""
    all: float
    """Of all processes on the cores that this process may use."""

    def cores_since(self, before: Usage, seconds: float) -> tuple[float, float]:
        """Cores busy since then: with the given processes, and with others."""
        mine = max(self.processes - before.processes, 0.0) / seconds  # a process may have ended
        return mine, max((self.all - before.all) / seconds - mine, 0.0)


def read_usage(pids: Iterable[int]) -> Usage:
    """CPU seconds of some processes, and of all processes, so far."""
    ticks = 0
    with suppress(OSError, ValueError):
        ticks = busy_ticks((PROC / "stat").read_text(), usable_cores())
    seconds = sum(seconds_of(PROC / str(pid)) for pid in pids)
    return Usage(seconds, ticks / os.sysconf("SC_CLK_TCK"))


def usable_cores() -> set[int]:
    """Numbers of the cores that this process may use; empty where the system does not tell."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def busy_ticks(stat: str, numbers: set[int]) -> int:
    """Ticks that the given cores have been busy, from the text of /proc/stat."""
    wanted = {f"cpu{number}" for number in numbers} or {"cpu"}
    total = 0
    for line in stat.splitlines():
        name, *columns = line.split()
        if name in wanted:
            user, nice, system, _idle, _waiting, irq, soft = map(int, columns[:7])
            total += user + nice + system + irq + soft
    return total


def is_running(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # A zombie still exists: its parent has not read its exit status.
    columns = read_stat(PROC / str(pid))
    return not columns or columns[STATE] not in ENDED


@dataclass(frozen=True)
class Contention:
    """Use of the same cores by other programs."""

    wanted: float
    """Cores."""
    cores: int

    def __str__(self) -> str:
        return f"other programs want {self.wanted:.1f} of {self.cores} cores"


def find_contention(mine: float, others: float, num_cores: int) -> Contention | None:
    """Contention for some cores, None if there is none. mine, others: cores in use."""
    contended = others >= MIN_CORES and mine + others >= FULL * num_cores
    return Contention(others, num_cores) if contended else None


def current_usage() -> Usage:
    """CPU seconds of this process and its descendants, and of all processes."""
    return read_usage([os.getpid(), *descendants()])


class LoadMonitor:
    """Measures from time to time what other programs use."""

    def __init__(
        self,
        read: Callable[[], Usage] = current_usage,
        now: Callable[[], float] = time.monotonic,
        *,
        num_cores: int = 0,
    ) -> None:
        """num_cores: 0 for all cores that this process may use."""
        self._read, self._now, self._cores = read, now, num_cores or cores()
        self._at, self._before = now(), read()
        self._contention: Contention | None = None

    def contention(self) -> Contention | None:
        """Contention in the last `EVERY_S` seconds."""
        seconds = self._now() - self._at
        if seconds >= EVERY_S:
            after, before = self._read(), self._before
            self._contention = find_contention(*after.cores_since(before, seconds), self._cores)
            self._at, self._before = self._at + seconds, after
        return self._contention
