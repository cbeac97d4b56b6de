"""Choice of the number of worker processes, by stepping an environment for a moment."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.pools.custom.base import CustomBatch, CustomPool
from sparring.pools.custom.faults import restored_folder
from sparring.pools.custom.make import make_pool
from sparring.pools.custom.vector import VectorEnvPool
from sparring.pools.workers.pool import WorkerPool

LOOK_S = 0.4
"""Seconds that one environment is stepped for, at most."""
TRIAL_S = 0.6
"""Seconds that both ways are tried for where it is not clear which is faster."""
ROUND_TRIP_S = 1e-4
"""Approximate cost of sending a step of all games to processes and waiting for them."""
CLEAR_S = 2e-3
"""Seconds of a step from which a process pays wherever there is a core for it."""
SLEEPS = 0.5
"""Share of computing in a step below which the environment mostly waits."""
MAX_WORKERS = 64
GAIN = 1.1
"""Least speedup for which workers are started: they take memory and cores of the learner."""


@dataclass(frozen=True)
class StepTiming:
    """Duration of an environment's steps, resets included."""

    seconds: float
    computing: float
    """Share of that in which a core is busy."""


@dataclass(frozen=True)
class WorkerChoice:
    """A number of workers, and the reason."""

    workers: int
    why: str


def choose_workers(word: str, games: int, cores: int) -> WorkerChoice:
    """Choose between this process and workers. Environments are made, stepped and closed."""
    with restored_folder():
        return _choose(word, games, cores)


def _choose(word: str, games: int, cores: int) -> WorkerChoice:
    pool = make_pool(word, copies=1)
    try:
        if isinstance(pool, VectorEnvPool):
            return WorkerChoice(0, "stays in this process: the factory makes a vector of envs")
        steps = measure(pool)
    finally:
        pool.close()
    workers = useful(steps, games, cores)
    waits = f", {1 - steps.computing:.0%} of it waiting," if steps.computing < SLEEPS else ""
    took = f"a step of one game takes {duration(steps.seconds)}{waits}"
    measured = f"{took} with its overhead, and {counted(cores, 'core')} available"
    if workers < 2:
        few = "there is one game" if games < 2 else "there is no core for a second process"
        return WorkerChoice(0, f"{measured}: stays in this process, {few}")
    if steps.seconds * games < 2 * ROUND_TRIP_S:
        total = f"all {games} games take {duration(steps.seconds * games)} together"
        why = f"stays in this process, {total}, about the cost of a round trip to workers"
        return WorkerChoice(0, f"{measured}: {why}")
    if steps.seconds >= CLEAR_S:
        return WorkerChoice(workers, f"{measured}: {workers} workers")
    gain = measured_gain(word, games, workers)
    if gain < GAIN:
        why = f"stays in this process, {workers} workers measured {gain:.1f}x"
        return WorkerChoice(0, f"{measured}: {why}")
    return WorkerChoice(workers, f"{measured}: {workers} workers, measured {gain:.1f}x")


def useful(steps: StepTiming, games: int, cores: int) -> int:
    """How many processes could be at work at once: more than cores where they mostly wait."""
    busy = steps.computing if steps.computing < SLEEPS else 1.0
    return min(games, MAX_WORKERS, math.ceil(cores / max(busy, 1 / MAX_WORKERS)))


def measure(pool: CustomPool, timeout_s: float = LOOK_S) -> StepTiming:
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
    return StepTiming(own / count, computed / own)


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
    """StepTiming of single games per second, each with its first legal action."""
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
