"""Peak rates of this machine: matrix products, memory bandwidth, and steps of a game's pool.

A peak is the fastest of several sizes and many short rounds, so that a busy moment of the machine
does not lower it.
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
from sparring.training.utilization.cache import MeasurementCache, processor, short_hash

SECONDS = 0.15
"""Time to measure one peak, about."""
SIZES = {"cpu": (128, 256, 512, 1024, 2048), "cuda": (1024, 2048, 4096, 8192)}
"""Of square matrices: from the sizes of small networks up to the device's peak."""
ARRAY_BYTES = {"cpu": 32 << 20, "cuda": 512 << 20}
"""Size of the copied array: more than caches hold."""
MEMORY = "memory"
PRECISIONS = {"float32": torch.float32, "bf16": torch.bfloat16}
STEPPING_S = 0.3
GAMES, GAMES_PER_THREAD = 1024, 64
"""Games at once on a CPU: the larger of GAMES and GAMES_PER_THREAD * threads."""
GPU_GAMES = 65_536
BURST = 16
"""Steps in one CUDA graph."""


@dataclass(frozen=True)
class ComputeDevice:
    """Device, and number of CPU threads, that a network is computed on."""

    device: str
    """cpu or cuda."""
    threads: int
    """CPU threads; not used on a GPU."""

    @property
    def device_type(self) -> str:
        return self.device.partition(":")[0]

    def entry_name(self, what: str) -> str:
        """Return the name of a cache entry that is valid on this device only."""
        if self.device_type == CPU:
            hardware = f"{self.threads} threads of {cores()} cores, {processor()}"
        else:
            hardware = torch.cuda.get_device_name(self.device)
        return f"{what}; {hardware}; torch {torch.__version__}"

    def synchronize(self) -> None:
        if self.device_type != CPU:
            torch.cuda.synchronize()

    def rand(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return random numbers without advancing the generators that training draws from."""
        generator = torch.Generator(self.device)
        generator.manual_seed(0)
        return torch.rand(shape, generator=generator, device=self.device).to(dtype)


@contextmanager
def torch_threads(device: ComputeDevice) -> Iterator[None]:
    """Let torch use the threads of a device."""
    before = torch.get_num_threads()
    if device.device_type == CPU and before != device.threads:
        torch.set_num_threads(device.threads)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def best_rate(
    device: ComputeDevice, work: Callable[[], object], amount: float, seconds: float
) -> float:
    """Repeat `work` for some seconds; return the best rate, `amount` per second of one call.

    After a warm-up call, work is called at least once.
    """
    work()
    device.synchronize()
    best, until = 0.0, time.perf_counter() + seconds
    while not best or time.perf_counter() < until:
        started = time.perf_counter()
        work()
        device.synchronize()
        best = max(best, amount / max(time.perf_counter() - started, 1e-9))
    return best


def matmul_rate(device: ComputeDevice, precision: str, seconds: float = SECONDS) -> float:
    """Measure multiply-adds per second of matrix products."""
    dtype, sizes = PRECISIONS[precision], SIZES[device.device_type]
    best, until = 0.0, time.perf_counter() + seconds
    for number, size in enumerate(sizes):
        left = until - time.perf_counter()
        # A processor without support for the precision is slow: the next size may take seconds.
        if best and 2 * size**3 / best > left:
            break
        a, b = (device.rand(size, size, dtype=dtype) for _ in range(2))
        out = torch.empty_like(a)
        for enabled in onednn_settings(device):
            with onednn(enabled):
                share = max(left, 0.0) / (len(sizes) - number) / 2
                best = max(best, best_rate(device, lambda: torch.mm(a, b, out=out), size**3, share))  # noqa: B023
    return best


def onednn_settings(device: ComputeDevice) -> tuple[bool, ...]:
    """With and without oneDNN where learners may turn it off, see `Forward.best_matmul`."""
    now = bool(torch.backends.mkldnn.enabled)
    on_arm = device.device_type == CPU and platform.machine() in ("aarch64", "arm64")
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


def memory_bandwidth(device: ComputeDevice, seconds: float = SECONDS) -> float:
    """Measure bytes per second, read and written: the better of a copy and a triad."""
    size = ARRAY_BYTES[device.device_type]
    if device.device_type == CPU:
        size = min(size, max(free_memory() // 16, 1 << 20))
    a, b, c = (torch.ones(size // 4, device=device.device) for _ in range(3))
    copy = best_rate(device, lambda: a.copy_(b), 2.0 * size, seconds / 2)
    triad = best_rate(device, lambda: torch.add(b, c, alpha=2.0, out=a), 3.0 * size, seconds / 2)
    return max(copy, triad)


def peak_names(device: ComputeDevice) -> dict[str, str]:
    """Return the names of the cache entries, by precision and for memory."""
    return {what: device.entry_name(f"products in {what}") for what in PRECISIONS} | {
        MEMORY: device.entry_name(MEMORY)
    }


def saved_peaks(device: ComputeDevice, cache: MeasurementCache) -> dict[str, float]:
    """Return cached rates: multiply-adds per second by precision, bytes per second of memory."""
    entries = {what: cache.numbers(name, "rate") for what, name in peak_names(device).items()}
    return {what: numbers[0] for what, numbers in entries.items() if numbers}


def measure_peaks(device: ComputeDevice, cache: MeasurementCache) -> dict[str, float]:
    """Measure the peaks that are not cached yet, and cache them."""
    peaks = saved_peaks(device, cache)
    with torch_threads(device), torch.no_grad():
        for what, name in peak_names(device).items():
            if what in peaks:
                continue
            rate = memory_bandwidth(device) if what == MEMORY else matmul_rate(device, what)
            cache.put(name, rate=rate)
            peaks[what] = rate
    return peaks


@dataclass(frozen=True)
class SteppingPeak:
    """Speed of a game's pool without inference and learning."""

    rate: float
    """Decisions per second."""
    density: float
    """Share of nonzero values in observations."""


def stepping_name(plan: Plan) -> str:
    """Return the name of a game's cache entry, with a hash of its flags, line-ups and mixes."""
    rules, participants = plan.rules, plan.participants
    flags = sorted(changed_flags(rules).items())
    variant = short_hash(flags, participants.lineups, participants.mixes)
    return ComputeDevice(plan.games_on, plan.threads).entry_name(
        f"stepping {rules.name} {variant}, sparring {sparring.__version__}"
    )


def can_measure_stepping(plan: Plan) -> bool:
    """Whether a pool of the same games can be made; custom environments are not stepped twice."""
    return plan.custom is None


def saved_stepping(plan: Plan, cache: MeasurementCache) -> SteppingPeak | None:
    if not can_measure_stepping(plan):
        return None
    numbers = cache.numbers(stepping_name(plan), "rate", "density")
    return SteppingPeak(*numbers) if numbers else None


def measure_stepping(plan: Plan, cache: MeasurementCache) -> SteppingPeak | None:
    """Measure stepping if it is not cached yet; None for a custom environment."""
    saved = saved_stepping(plan, cache)
    if saved or not can_measure_stepping(plan):
        return saved
    peak = step_on_cpu(plan) if plan.games_on == CPU else step_on_gpu(plan)
    cache.put(stepping_name(plan), rate=peak.rate, density=peak.density)
    return peak


def step_on_cpu(plan: Plan, seconds: float = STEPPING_S) -> SteppingPeak:
    pool = Pool(
        plan.rules,
        max(GAMES, GAMES_PER_THREAD * plan.threads),
        threads=plan.threads,
        lineups=plan.participants.lineups,
        mixes=plan.participants.mixes,
    )
    pool.reset()

    def pending_rows() -> int:
        return int((pool.batch().policy >= 0).sum())

    rate = best_burst_rate(pool.run_random, pending_rows, seconds)
    return SteppingPeak(rate, density_of(pool.rules.widen(pool.batch().obs[:256])))


def best_burst_rate(
    play: Callable[[int], Any], pending_rows: Callable[[], int], seconds: float, bursts: int = 6
) -> float:
    """Play several bursts of steps; return the best decisions per second of a burst.

    play: makes a number of steps. pending_rows: how many rows wait for an action now.
    """
    play(1)
    started = time.perf_counter()
    play(1)
    steps = max(int(seconds / bursts / max(time.perf_counter() - started, 1e-9)), 1)
    best = 0.0
    for _ in range(bursts):
        before, started = pending_rows(), time.perf_counter()
        play(steps)
        took = time.perf_counter() - started
        best = max(best, steps * (before + pending_rows()) / 2 / max(took, 1e-9))
    return best


def step_on_gpu(plan: Plan, seconds: float = STEPPING_S) -> SteppingPeak:
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

    def pending_rows() -> int:
        return int((pool.batch().policy >= 0).sum())

    rate = BURST * best_burst_rate(play, pending_rows, seconds)
    obs: Any = pool.batch().obs[:256].cpu().numpy()
    return SteppingPeak(rate, density_of(plan.rules.widen(obs)))


def density_of(numbers: Any) -> float:
    return max(float(np.count_nonzero(numbers) / max(numbers.size, 1)), 1e-6)
