"""Cores for runs that go on side by side, each with some of its own."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from sparring.errors import ConfigError

Job = TypeVar("Job")
Found = TypeVar("Found")
LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that limit the threads of a library; read once, when it is loaded."""


def core_groups(pin: str, each: int, parallel: int) -> list[tuple[int, ...]]:
    """Return the cores of every run that goes on at once.

    pin: numbers of cores as 2,3,8-11; left out, all that this process may use.
    each: cores of a run. parallel: how many runs at once.
    """
    there = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    given = read_cores(pin) if pin else there or list(range(os.cpu_count() or 1))
    if missing := [core for core in given if there and core not in there]:
        raise ConfigError(f"--pin {pin}: no core {missing[0]}; this process may use {there}")
    groups = [tuple(given[at : at + each]) for at in range(0, len(given) - each + 1, each)]
    if each < 1 or parallel < 1 or parallel > len(groups):
        raise ConfigError(
            f"--parallel {parallel}: {len(given)} cores are {len(groups)} times --cores {each}; "
            "run fewer at once"
        )
    return groups[:parallel]


def read_cores(text: str) -> list[int]:
    """Read 2,3,8-11."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            found += range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise ConfigError(
                f"--pin {text!r}: give numbers of cores, such as 2,3 or 2-5"
            ) from None
    return list(dict.fromkeys(found))


def pinned(cores: Sequence[int]) -> None:
    """Stay on these cores; what this thread starts stays there too."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def threads_for(count: int) -> dict[str, str]:
    """Variables for a process with so many threads."""
    return dict.fromkeys(LIBRARIES, str(count))


def side_by_side(
    jobs: Sequence[Job],
    groups: Sequence[tuple[int, ...]],
    work: Callable[[Job, tuple[int, ...]], Found],
    done: Callable[[Job, Found], None],
) -> None:
    """Do all jobs, as many at once as there are groups of cores, in their order.

    work: starts a process on these cores and waits for it. done: told as each one ends.
    """
    free: queue.SimpleQueue[tuple[int, ...]] = queue.SimpleQueue()
    for group in groups:
        free.put(group)

    def one(job: Job) -> Found:
        group = free.get()
        try:
            pinned(group)
            return work(job, group)
        finally:
            free.put(group)

    with ThreadPoolExecutor(len(groups)) as crew:
        running = {crew.submit(one, job): job for job in jobs}
        try:
            for ended in as_completed(running):
                done(running[ended], ended.result())
        except BaseException:
            crew.shutdown(wait=False, cancel_futures=True)  # what has not begun stays undone
            raise
