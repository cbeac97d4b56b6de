"""What this machine can do at best: matrix products, memory, and steps of a game's pool.

A ceiling is a best: of several sizes and many short rounds the fastest one counts, so that a busy
moment of the machine does not lower it.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import sparring
from sparring.games.flags import changed_flags
from sparring.learn.forward import set_onednn
from sparring.learn.plan import CPU, Plan
from sparring.machine import cores, free_memory
from sparring.pools.native import Pool
from sparring.training.meter.kept import Kept, digest, processor

SECONDS = 0.15
"""That one ceiling takes to measure, about."""
SIZES = {"cpu": (128, 256, 512, 1024, 2048), "cuda": (1024, 2048, 4096, 8192)}
"""Of square matrices; between them are the products of our networks and the peak of the device."""
ARRAY_BYTES = {"cpu": 32 << 20, "cuda": 512 << 20}
"""Of an array that is copied: more than caches hold."""
MEMORY = "memory"
PRECISIONS = {"float32": torch.float32, "bf16": torch.bfloat16}
STEPPING_S = 0.3
GAMES, PER_THREAD = 1024, 64
"""Games at once on a CPU: so many, or so many for each thread."""
GPU_GAMES = 65_536
BURST = 16
"""Steps between two looks at the clock on a GPU, where they are one graph."""


@dataclass(frozen=True)
class Place:
    """Where a network is computed."""

    device: str
    """cpu or cuda."""
    threads: int
    """Of the CPU; a GPU does not care."""

    @property
    def kind(self) -> str:
        return self.device.partition(":")[0]

    def named(self, what: str) -> str:
        """Return what an entry is called that holds here and nowhere else."""
        if self.kind == CPU:
            where = f"{self.threads} threads of {cores()} cores, {processor()}"
        else:
            where = torch.cuda.get_device_name(self.device)
        return f"{what}; {where}; torch {torch.__version__}"

    def wait(self) -> None:
        if self.kind != CPU:
            torch.cuda.synchronize()

    def random(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Numbers that are not 0, without touching the generators that training draws from."""
        own = torch.Generator(self.device)
        own.manual_seed(0)
        return torch.rand(shape, generator=own, device=self.device).to(dtype)


@contextmanager
def on_threads(place: Place) -> Iterator[None]:
    """Let torch have the threads of a place."""
    before = torch.get_num_threads()
    if place.kind == CPU and before != place.threads:
        torch.set_num_threads(place.threads)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def best_rate(place: Place, work: Callable[[], object], amount: float, seconds: float) -> float:
    """Repeat work for so long; return the most of its amount that was done in a second.

    It is done once at least, besides a first time that only wakes up.
    """
    work()
    place.wait()
    best, until = 0.0, time.perf_counter() + seconds
    while not best or time.perf_counter() < until:
        started = time.perf_counter()
        work()
        place.wait()
        best = max(best, amount / max(time.perf_counter() - started, 1e-9))
    return best


def products(place: Place, precision: str, seconds: float = SECONDS) -> float:
    """Measure multiply-adds per second of matrix products."""
    dtype, sizes = PRECISIONS[precision], SIZES[place.kind]
    best, until = 0.0, time.perf_counter() + seconds
    for number, size in enumerate(sizes):
        left = until - time.perf_counter()
        # A processor without such numbers is slow at them: the next size may take seconds.
        if best and 2 * size**3 / best > left:
            break
        a, b = (place.random(size, size, dtype=dtype) for _ in range(2))
        out = torch.empty_like(a)
        for enabled in library_switches(place):
            with onednn(enabled):
                share = max(left, 0.0) / (len(sizes) - number) / 2
                best = max(best, best_rate(place, lambda: torch.mm(a, b, out=out), size**3, share))  # noqa: B023
    return best


def library_switches(place: Place) -> tuple[bool, ...]:
    """With and without oneDNN where learners do without it, see `Forward.best_matmul`."""
    now = bool(torch.backends.mkldnn.enabled)
    on_arm = place.kind == CPU and platform.machine() in ("aarch64", "arm64")
    return (True, False) if on_arm and now else (now,)


@contextmanager
def onednn(enabled: bool) -> Iterator[None]:
    before = bool(torch.backends.mkldnn.enabled)
    if enabled != before:
        set_onednn(enabled)
    try:
        yield
    finally:
        if enabled != before:
            set_onednn(before)


def memory(place: Place, seconds: float = SECONDS) -> float:
    """Measure bytes per second, read and written: a copy and a triad, the better of both."""
    size = ARRAY_BYTES[place.kind]
    if place.kind == CPU:
        size = min(size, max(free_memory() // 16, 1 << 20))
    a, b, c = (torch.ones(size // 4, device=place.device) for _ in range(3))
    copied = best_rate(place, lambda: a.copy_(b), 2.0 * size, seconds / 2)
    added = best_rate(place, lambda: torch.add(b, c, alpha=2.0, out=a), 3.0 * size, seconds / 2)
    return max(copied, added)


def names_of(place: Place) -> dict[str, str]:
    return {what: place.named(f"products in {what}") for what in PRECISIONS} | {
        MEMORY: place.named(MEMORY)
    }


def ceilings_of(place: Place, kept: Kept) -> dict[str, float]:
    """Return what is known: multiply-adds per second by precision, bytes per second of memory."""
    found = {what: kept.numbers(name, "rate") for what, name in names_of(place).items()}
    return {what: numbers[0] for what, numbers in found.items() if numbers}


def measure_machine(place: Place, kept: Kept, *, again: bool = False) -> dict[str, float]:
    """Measure what is not known yet, or everything again, and keep it."""
    known = {} if again else ceilings_of(place, kept)
    with on_threads(place), torch.no_grad():
        for what, name in names_of(place).items():
            if what in known:
                continue
            rate = memory(place) if what == MEMORY else products(place, what)
            kept.put(name, rate=rate)
            known[what] = rate
    return known


@dataclass(frozen=True)
class Stepping:
    """What a game's pool does when nothing else is done."""

    rate: float
    """Decisions per second."""
    density: float
    """Share of the numbers in observations that are not 0."""


def stepping_name(plan: Plan) -> str:
    """What the entry of a game is called, with its flags and whoever moves inside its steps."""
    rules, participants = plan.rules, plan.participants
    what = digest(sorted(changed_flags(rules).items()), participants.lineups, participants.mixes)
    return Place(plan.games_on, plan.threads).named(
        f"stepping {rules.name} {what}, sparring {sparring.__version__}"
    )


def can_be_stepped(plan: Plan) -> bool:
    """Whether a pool of the same games can be made: nobody else's environment is stepped here."""
    return plan.custom is None


def stepping_of(plan: Plan, kept: Kept) -> Stepping | None:
    found = kept.numbers(stepping_name(plan), "rate", "density") if can_be_stepped(plan) else None
    return Stepping(*found) if found else None


def measure_stepping(plan: Plan, kept: Kept, *, again: bool = False) -> Stepping | None:
    """Measure it if it is not known yet, and keep it; None for somebody's own environment."""
    known = None if again else stepping_of(plan, kept)
    if known or not can_be_stepped(plan):
        return known
    found = on_cpu(plan) if plan.games_on == CPU else on_gpu(plan)
    kept.put(stepping_name(plan), rate=found.rate, density=found.density)
    return found


def on_cpu(plan: Plan, seconds: float = STEPPING_S) -> Stepping:
    pool = Pool(
        plan.rules,
        max(GAMES, PER_THREAD * plan.threads),
        threads=plan.threads,
        lineups=plan.participants.lineups,
        mixes=plan.participants.mixes,
    )
    pool.reset()

    def waiting() -> int:
        return int((pool.batch().policy >= 0).sum())

    rate = best_burst(pool.run_random, waiting, seconds)
    return Stepping(rate, density_of(pool.rules.widen(pool.batch().obs[:256])))


def best_burst(
    play: Callable[[int], Any], waiting: Callable[[], int], seconds: float, bursts: int = 6
) -> float:
    """Play for so long; return the most decisions per second that one of some bursts made.

    play: makes so many steps. waiting: how many rows wait for a decision.
    """
    play(1)
    started = time.perf_counter()
    play(1)
    steps = max(int(seconds / bursts / max(time.perf_counter() - started, 1e-9)), 1)
    best = 0.0
    for _ in range(bursts):
        before, started = waiting(), time.perf_counter()
        play(steps)
        took = time.perf_counter() - started
        best = max(best, steps * (before + waiting()) / 2 / max(took, 1e-9))
    return best


def on_gpu(plan: Plan, seconds: float = STEPPING_S) -> Stepping:
    from sparring.learn.fused.graphs import no_garbage
    from sparring.pools.cuda import CudaPool

    pool = CudaPool(
        plan.rules,
        GPU_GAMES,
        seed=0,
        lineups=plan.participants.lineups,
        mixes=plan.participants.mixes,
        device=plan.device,
    )
    pool.reset()

    def step() -> None:
        for _ in range(BURST):
            pool.step(pool.sample_actions())

    step()
    graph = torch.cuda.CUDAGraph()
    with no_garbage(), torch.cuda.graph(graph):
        step()

    def play(times: int) -> None:
        for _ in range(times):
            graph.replay()
        torch.cuda.synchronize()

    def waiting() -> int:
        return int((pool.batch().policy >= 0).sum())

    rate = BURST * best_burst(play, waiting, seconds)
    obs: Any = pool.batch().obs[:256].cpu().numpy()
    return Stepping(rate, density_of(plan.rules.widen(obs)))


def density_of(numbers: Any) -> float:
    return max(float(np.count_nonzero(numbers) / max(numbers.size, 1)), 1e-6)
