"""What processes use, ours and those of others: time of cores, and memory, as /proc says it."""

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
"""Columns of /proc/PID/stat behind the name."""
ENDED = ("Z", "X")
"""States of processes that only have a number left."""
EVERY_S = 5.0
"""Looking takes some milliseconds."""
NOTICED = 0.5
"""Cores that others want, below which nobody minds."""
FULL = 0.9
"""Share of the cores that are busy, from which on somebody waits for one."""


def below(pid: int = 0) -> list[int]:
    """Return the processes below one, this one if none is named; none where nobody tells."""
    started: dict[int, list[int]] = {}
    for folder in PROC.glob("[0-9]*"):
        if facts := facts_of(folder):
            started.setdefault(int(facts[PARENT]), []).append(int(folder.name))
    found: list[int] = []
    waiting = list(started.get(pid or os.getpid(), ()))
    while waiting:
        found.append(waiting.pop())
        waiting += started.get(found[-1], ())
    return sorted(found)


def facts_of(folder: Path) -> list[str]:
    """Return what /proc/PID/stat says behind the name, which may hold blanks; "" if it is gone."""
    with suppress(OSError):
        return (folder / "stat").read_text().rpartition(")")[2].split()
    return []


def seconds_of(folder: Path) -> float:
    """Return the CPU seconds of a process or thread so far, 0 if it is gone."""
    return sum(map(int, facts_of(folder)[TIMES])) / os.sysconf("SC_CLK_TCK")


def cpu_s(pids: Iterable[int] = ()) -> float:
    """Return the time that this process and some others have had on cores so far."""
    return time.process_time() + sum(seconds_of(PROC / str(pid)) for pid in pids)


def thread_seconds(pids: Iterable[int]) -> dict[tuple[int, int], float]:
    """Return the CPU seconds of every thread so far, by process and thread."""
    return {
        (pid, int(folder.name)): seconds_of(folder)
        for pid in pids
        for folder in (PROC / str(pid) / "task").glob("[0-9]*")
    }


def memory(pids: Iterable[int] = ()) -> int:
    """Return the bytes that this process and some others hold, 0 where nobody tells."""
    others = [facts for pid in pids if (facts := facts_of(PROC / str(pid)))]
    pages = sum(int(facts[PAGES]) for facts in others)
    return (memory_used() or 0) + pages * os.sysconf("SC_PAGE_SIZE")


def trim() -> None:
    """Give memory back to the system that was let go of, so that what follows is seen to grow."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).malloc_trim(0)


@dataclass(frozen=True)
class Usage:
    """CPU seconds at some moment."""

    own: float
    """Of the processes asked for."""
    everybody: float
    """Of everybody on the cores that this process may use."""

    def cores_since(self, before: Usage, seconds: float) -> tuple[float, float]:
        """Return the cores that were busy since then: with the processes, and with others."""
        own = max(self.own - before.own, 0.0) / seconds  # one of them may have ended
        return own, max((self.everybody - before.everybody) / seconds - own, 0.0)


def usage(pids: Iterable[int]) -> Usage:
    """Return what processes, and everybody, have used of the CPUs so far."""
    everybody = 0
    with suppress(OSError, ValueError):
        everybody = busy_ticks((PROC / "stat").read_text(), mine())
    own = sum(seconds_of(PROC / str(pid)) for pid in pids)
    return Usage(own, everybody / os.sysconf("SC_CLK_TCK"))


def mine() -> set[int]:
    """The numbers of the cores that this process may use, none where nobody says."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def busy_ticks(stat: str, numbers: set[int]) -> int:
    """How long some cores have been busy, as /proc/stat says it: cores of others do not count."""
    wanted = {f"cpu{number}" for number in numbers} or {"cpu"}
    total = 0
    for line in stat.splitlines():
        name, *words = line.split()
        if name in wanted:
            user, nice, system, _idle, _waiting, irq, soft = map(int, words[:7])
            total += user + nice + system + irq + soft
    return total


def running(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # One whose parent has not asked for its end is there still.
    facts = facts_of(PROC / str(pid))
    return not facts or facts[STATE] not in ENDED


@dataclass(frozen=True)
class Crowd:
    """Programs of somebody else's on the same cores."""

    wanted: float
    """Cores."""
    cores: int

    @property
    def words(self) -> str:
        return f"other programs want {self.wanted:.1f} of {self.cores} cores"


def crowd_of(own: float, others: float, there: int) -> Crowd | None:
    """The crowd on some cores, None where there is room for everybody. own, others: in cores."""
    crowded = others >= NOTICED and own + others >= FULL * there
    return Crowd(others, there) if crowded else None


def own_usage() -> Usage:
    """What this process and all that it has started have used, and everybody."""
    return usage([os.getpid(), *below()])


class Beside:
    """Looks now and then at what others use."""

    def __init__(
        self,
        look: Callable[[], Usage] = own_usage,
        now: Callable[[], float] = time.monotonic,
        *,
        there: int = 0,
    ) -> None:
        """Begin now. there: cores, 0 for all that this process may use."""
        self._look, self._now, self._cores = look, now, there or cores()
        self._at, self._before = now(), look()
        self._crowd: Crowd | None = None

    def crowd(self) -> Crowd | None:
        """Who was there in the last stretch of `EVERY_S` seconds."""
        seconds = self._now() - self._at
        if seconds >= EVERY_S:
            after, before = self._look(), self._before
            self._crowd = crowd_of(*after.cores_since(before, seconds), self._cores)
            self._at, self._before = self._at + seconds, after
        return self._crowd
