"""Stepping alone: decisions per second of a game's pool when random actions cost nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import sparring
from sparring.games.flags import changed_flags
from sparring.learn.plan import CPU, Plan
from sparring.pools.native import Pool
from sparring.training.meter.ceilings import Place
from sparring.training.meter.kept import Kept, digest

SECONDS = 0.3
GAMES, PER_THREAD = 1024, 64
"""Games at once on a CPU: so many, or so many for each thread."""
GPU_GAMES = 65_536
BURST = 16
"""Steps between two looks at the clock on a GPU, where they are one graph."""


@dataclass(frozen=True)
class Stepping:
    """What a game's pool does when nothing else is done."""

    rate: float
    """Decisions per second."""
    density: float
    """Share of the numbers in observations that are not 0."""


def name_of(plan: Plan) -> str:
    """What the entry of a game is called, with its flags and whoever moves inside its steps."""
    rules, cast = plan.rules, plan.cast
    what = digest(sorted(changed_flags(rules).items()), cast.lineups, cast.pots)
    return Place(plan.games_on, plan.threads).named(
        f"stepping {rules.name} {what}, sparring {sparring.__version__}"
    )


def can_be_stepped(plan: Plan) -> bool:
    """Whether a pool of the same games can be made: nobody else's environment is stepped here."""
    return plan.foreign is None


def stepping_of(plan: Plan, kept: Kept) -> Stepping | None:
    """Return what is known."""
    found = kept.numbers(name_of(plan), "rate", "density") if can_be_stepped(plan) else None
    return Stepping(*found) if found else None


def measure_stepping(plan: Plan, kept: Kept, *, again: bool = False) -> Stepping | None:
    """Measure it if it is not known yet, and keep it; None for somebody's own environment."""
    known = None if again else stepping_of(plan, kept)
    if known or not can_be_stepped(plan):
        return known
    found = on_cpu(plan) if plan.games_on == CPU else on_gpu(plan)
    kept.put(name_of(plan), rate=found.rate, density=found.density)
    return found


def on_cpu(plan: Plan, seconds: float = SECONDS) -> Stepping:
    """Play with the run's threads, inside C++."""
    pool = Pool(
        plan.rules,
        max(GAMES, PER_THREAD * plan.threads),
        threads=plan.threads,
        lineups=plan.cast.lineups,
        pots=plan.cast.pots,
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


def on_gpu(plan: Plan, seconds: float = SECONDS) -> Stepping:
    """Replay captured steps."""
    import torch

    from sparring.learn.fused.graphs import no_garbage
    from sparring.pools.cuda import CudaPool

    pool = CudaPool(
        plan.rules,
        GPU_GAMES,
        seed=0,
        lineups=plan.cast.lineups,
        pots=plan.cast.pots,
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
    """Share of numbers that are not 0."""
    return max(float(np.count_nonzero(numbers) / max(numbers.size, 1)), 1e-6)
