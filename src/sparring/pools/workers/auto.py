"""Whether worker processes pay, found out by stepping the environment for a moment."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.pools.custom.base import CustomBatch, CustomPool
from sparring.pools.custom.faults import same_folder
from sparring.pools.custom.make import make_pool
from sparring.pools.custom.vector import VectorEnvPool
from sparring.pools.workers.pool import WorkerPool

LOOK_S = 0.4
"""Seconds that one env is stepped for, at most."""
TRIAL_S = 0.6
"""Seconds that both ways are stepped for where it is not clear which is faster."""
ROUND_TRIP_S = 1e-4
"""About what it costs to ask processes for a step of all games and to wait for them."""
CLEAR_S = 2e-3
"""A step as long as this is worth a process wherever there is a core for it."""
SLEEPS = 0.5
"""An env that computes for less than this share of its steps waits for something."""
MOST = 64
GAIN = 1.1
"""Processes take memory and a core that learns; for less than this they are not started."""


@dataclass(frozen=True)
class Steps:
    """How long steps of an env take, resets included."""

    seconds: float
    computing: float
    """Share of that in which a core is busy."""


@dataclass(frozen=True)
class Choice:
    """How many workers there are to be, and why."""

    workers: int
    why: str


def choose_workers(word: str, games: int, cores: int) -> Choice:
    """Decide between this process and others. Envs are made, stepped and closed again."""
    with same_folder():
        return _choose(word, games, cores)


def _choose(word: str, games: int, cores: int) -> Choice:
    pool = make_pool(word, copies=1)
    try:
        if isinstance(pool, VectorEnvPool):
            return Choice(0, "stays in this process: the factory makes a vector of envs")
        steps = measure(pool)
    finally:
        pool.close()
    workers = useful(steps, games, cores)
    waits = f", {1 - steps.computing:.0%} of it waiting," if steps.computing < SLEEPS else ""
    took = f"a step of one game takes {duration(steps.seconds)}{waits}"
    told = f"{took} with all that belongs to it, and {counted(cores, 'core')} there"
    if workers < 2:
        few = "there is one game" if games < 2 else "there is no core for a second process"
        return Choice(0, f"{told}: stays in this process, {few}")
    if steps.seconds * games < 2 * ROUND_TRIP_S:
        rounds = f"all {games} games take {duration(steps.seconds * games)} together"
        return Choice(0, f"{told}: stays in this process, {rounds}, about what asking others costs")
    if steps.seconds >= CLEAR_S:
        return Choice(workers, f"{told}: {workers} workers")
    gain = measured_gain(word, games, workers)
    if gain < GAIN:
        return Choice(0, f"{told}: stays in this process, {workers} workers measured {gain:.1f}x")
    return Choice(workers, f"{told}: {workers} workers, measured {gain:.1f}x")


def useful(steps: Steps, games: int, cores: int) -> int:
    """How many processes could be at work at once: more than cores where they mostly wait."""
    busy = steps.computing if steps.computing < SLEEPS else 1.0
    return min(games, MOST, math.ceil(cores / max(busy, 1 / MOST)))


def measure(pool: CustomPool, timeout_s: float = LOOK_S) -> Steps:
    """Step an env with random actions; the first step, which warms up, does not count."""
    pool.reset()
    pool.step(pool.sample_actions())
    count, spent, computed, queued = 0, 0.0, 0.0, 0.0
    until = time.perf_counter() + timeout_s
    while not count or time.perf_counter() < until:
        action, waited = pool.sample_actions(), queued_s()
        began, worked = time.perf_counter(), time.thread_time()
        pool.step(action)
        count += 1
        computed += time.thread_time() - worked
        spent += time.perf_counter() - began
        queued += queued_s() - waited
    # What others took of the cores is no waiting of the env's.
    own = max(spent - queued, computed, 1e-9)
    return Steps(own / count, computed / own)


def queued_s() -> float:
    """Seconds that this thread has waited for a core, where the system tells."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def measured_gain(word: str, games: int, workers: int) -> float:
    """How many times as many steps workers make, in the same time."""
    alone = make_pool(word, games)
    try:
        here = rate(alone)
    finally:
        alone.close()
    with WorkerPool(word, games, workers=workers) as pool:
        return rate(pool) / here


def rate(pool: CustomPool) -> float:
    """Steps of single games per second, each with its first legal action."""
    pool.reset()
    pool.step(easy(pool, pool.batch()))
    made, began = 0, time.perf_counter()
    if isinstance(pool, WorkerPool):
        for slot in range(pool.slots):
            pool.send(easy(pool, pool.batch(slot)), slot)
    while time.perf_counter() - began < TRIAL_S or not made:
        if not isinstance(pool, WorkerPool):
            made += len(pool.step(easy(pool, pool.batch())).terminated)
            continue
        for slot in pool.ready(range(pool.slots)):
            batch = pool.recv(slot)
            made += len(batch.terminated)
            pool.send(easy(pool, batch), slot)
    return made / (time.perf_counter() - began)


def easy(pool: CustomPool, batch: CustomBatch) -> npt.NDArray[Any]:
    """Legal actions that are found at once."""
    if pool.rules.box:
        return np.zeros((len(batch.mask), pool.rules.box), np.float32)
    first: npt.NDArray[np.intp] = batch.mask.argmax(axis=1)
    return first


def duration(seconds: float) -> str:
    """A time as people write it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def counted(count: int, what: str) -> str:
    """A number of things, and a verb."""
    return f"1 {what} is" if count == 1 else f"{count} {what}s are"
