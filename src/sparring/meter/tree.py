"""The processes of a training, and what they use of the machine, as /proc says it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TRAINING = "training"
EVALUATION = "evaluation"
DOES = {
    "sparring.training.evaluate": EVALUATION,
    "sparring.pools.workers.process": "worker",
    "sparring.cluster.actors.actor": "actor",
    "sparring.cluster.replicas.replica": "replica",
}
"""What the processes are for that a training starts, by their module."""
OTHER = "other process"
ENDED = ("Z", "X")
"""States of processes that only have a number left."""


def processes_of(pid: int) -> dict[int, str]:
    """Return a process and all that it has started, with what they do."""
    started: dict[int, list[int]] = {}
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            started.setdefault(int(facts(folder)[1]), []).append(int(folder.name))
    found = {pid: TRAINING}
    waiting = list(started.get(pid, ()))
    while waiting:
        one = waiting.pop()
        found[one] = does(one)
        waiting += started.get(one, ())
    return found


def does(pid: int) -> str:
    """Say what a process is for that a training has started."""
    with suppress(OSError):
        words = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
        return next((DOES[word] for word in words if word in DOES), OTHER)
    return OTHER


def facts(folder: Path) -> list[str]:
    """Return what /proc/PID/stat says behind the name, which may hold blanks and brackets."""
    return (folder / "stat").read_text().rpartition(")")[2].split()


def thread_seconds(pids: Iterable[int]) -> dict[tuple[int, int], float]:
    """Return the CPU seconds of every thread so far, by process and thread."""
    tick = os.sysconf("SC_CLK_TCK")
    found: dict[tuple[int, int], float] = {}
    for pid in pids:
        for folder in (PROC / str(pid) / "task").glob("[0-9]*"):
            with suppress(OSError, ValueError, IndexError):
                spent = sum(int(word) for word in facts(folder)[11:13])
                found[pid, int(folder.name)] = spent / tick
    return found


@dataclass(frozen=True)
class Usage:
    """CPU seconds at some moment."""

    own: float
    """Of the processes asked for."""
    everybody: float
    """Of everybody on the cores that this process may use."""


def usage(pids: Iterable[int]) -> Usage:
    """Return what processes, and everybody, have used of the CPUs so far."""
    tick = os.sysconf("SC_CLK_TCK")
    own = everybody = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            own += sum(int(word) for word in facts(PROC / str(pid))[11:13])
    with suppress(OSError, ValueError):
        everybody = busy_ticks((PROC / "stat").read_text(), mine())
    return Usage(own / tick, everybody / tick)


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
    with suppress(OSError, IndexError):  # one whose parent has not asked for its end is there still
        return facts(PROC / str(pid))[0] not in ENDED
    return True
