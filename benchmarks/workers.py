"""Worker processes against Gymnasium's and Stable-Baselines3's, on the environments of the tests.

python benchmarks/workers.py                measure and print a table
python benchmarks/workers.py --json         ... as JSON
python benchmarks/workers.py --only quick   only the parts whose name begins so

All contenders step the same environments with their first legal actions, as many games each. They
take turns within one run, so that whatever else the machine does meets all of them; the ratio is
the median over rounds of the ratios within a round. On a machine that others use too, whoever has
more processes gets more of its cores; steps per second of work, of all cores together, tell then.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from sparring.machine import cores, machine_info
from sparring.pools.custom import make_pool
from sparring.pools.workers import WorkerPool
from sparring.pools.workers.auto import easy

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

import own_envs  # noqa: E402

OURS, HERE, ASYNC, SUBPROC = "workers", "one process", "AsyncVectorEnv", "SubprocVecEnv"
ALL = "workers, waiting for all"


@dataclass(frozen=True)
class Part:
    """One comparison."""

    make: str
    games: int
    workers: int
    groups: int
    against: tuple[str, ...]
    """The first of them is who ours is to be compared with."""


def parts(two: int) -> dict[str, Part]:
    """What is measured; `two` is the number of cores."""
    peers = (ASYNC, SUBPROC, HERE)
    return {
        "quick: 50 us of work, 16 games": Part("quick", 16, two, 0, peers),
        "quick: 50 us of work, 64 games": Part("quick", 64, two, 0, peers),
        "cards: 5 ms of work": Part("slow_cards", 16, two, 0, peers),
        "cards: 5 ms of waiting": Part("sleepy_cards", 16, 16, 4, peers),
        "uneven: 1-50 ms of waiting": Part("uneven_sleep", 16, 16, 16, (ALL, ASYNC, SUBPROC)),
        "uneven: 1-50 ms of work, a game per core": Part(
            "uneven", two, two, two, (ALL, ASYNC, SUBPROC)
        ),
        "uneven: 1-50 ms of work, 8 games per core": Part(
            "uneven", 8 * two, two, 0, (ALL, ASYNC, SUBPROC)
        ),
        "table: a PettingZoo game": Part("table", 64, two, 0, (HERE,)),
    }


@dataclass(frozen=True)
class Contender:
    """A way of stepping games."""

    some: Callable[[], int]
    """Makes some steps; returns how many."""
    end: Callable[[], None]
    pids: list[int]
    """Of its processes."""

    def cpu_s(self) -> float:
        """Seconds that cores have worked for it so far, this process included."""
        spent = time.process_time()
        for pid in self.pids:
            told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            spent += (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")
        return spent


def ours(part: Part) -> Contender:
    """Our workers, each group as it is ready."""
    pool = WorkerPool(
        f"own_envs:make_{part.make}", part.games, workers=part.workers, groups=part.groups
    )
    pool.reset()
    slots = range(pool.slots)
    for slot in slots:
        pool.send(easy(pool, pool.batch(slot)), slot)

    def some() -> int:
        made = 0
        for slot in pool.ready(slots):
            batch = pool.recv(slot)
            made += len(batch.terminated)
            pool.send(easy(pool, batch), slot)
        return made

    return Contender(some, pool.close, pool.pids)


def together(part: Part, *, here: bool) -> Contender:
    """Our games with a wait for all of them, in workers or in this process."""
    word = f"own_envs:make_{part.make}"
    pool: Any = make_pool(word, part.games)
    if not here:
        pool = WorkerPool(word, part.games, workers=part.workers, groups=1)
    pool.reset()

    def some() -> int:
        return len(pool.step(easy(pool, pool.batch())).terminated)

    return Contender(some, pool.close, [] if here else pool.pids)


def first_legal(obs: Any, games: int) -> Any:
    """The same actions for the others."""
    mask = obs["action_mask"] if isinstance(obs, dict) else np.ones((games, 1))
    return np.asarray(mask).argmax(axis=1)


def gymnasium_async(part: Part) -> Contender:
    """Gymnasium's processes with shared memory; resets within the step, as ours and SB3's do."""
    make = getattr(own_envs, f"make_{part.make}")
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    env = gymnasium.vector.AsyncVectorEnv(
        [make] * part.games, shared_memory=True, autoreset_mode=mode
    )
    seen: list[Any] = [env.reset(seed=0)[0]]

    def some() -> int:
        seen[0] = env.step(first_legal(seen[0], part.games))[0]
        return part.games

    return Contender(some, partial(env.close, terminate=True), [p.pid for p in env.processes])


def sb3_subproc(part: Part) -> Contender:
    """SB3's processes."""
    from stable_baselines3.common.vec_env import SubprocVecEnv

    makers = [getattr(own_envs, f"make_{part.make}")] * part.games
    env = SubprocVecEnv(makers, start_method="fork")  # the one that starts soonest
    env.seed(0)
    seen: list[Any] = [env.reset()]

    def some() -> int:
        seen[0] = env.step(first_legal(seen[0], part.games))[0]
        return part.games

    return Contender(some, env.close, [process.pid for process in env.processes])


STARTS: dict[str, Callable[[Part], Contender]] = {
    OURS: ours,
    ALL: partial(together, here=False),
    HERE: partial(together, here=True),
    ASYNC: gymnasium_async,
    SUBPROC: sb3_subproc,
}


def rate(one: Contender, seconds: float) -> tuple[float, float]:
    """Steps of single games per second of time, and per second of work of all cores."""
    made, began, worked = 0, time.perf_counter(), one.cpu_s()
    while (spent := time.perf_counter() - began) < seconds:
        made += one.some()
    return made / spent, made / max(one.cpu_s() - worked, 1e-9)


def measure(part: Part, rounds: int, seconds: float) -> dict[str, Any]:
    """Let all take turns; only one of them has anything to do at a time, the others wait."""
    names = (OURS, *part.against)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    made = {name: STARTS[name](part) for name in names}
    try:
        for number in range(rounds + 1):
            for name in names if number % 2 else reversed(names):
                steps = rate(made[name], seconds if number else seconds / 3)
                if number:  # the first turn warms up
                    found[name].append(steps)
    finally:
        for one in made.values():
            one.end()

    def times(other: str, which: int) -> float:
        pairs = zip(found[OURS], found[other], strict=True)
        return statistics.median(mine[which] / theirs[which] for mine, theirs in pairs)

    def medians(which: int) -> dict[str, float]:
        return {name: statistics.median(r[which] for r in rates) for name, rates in found.items()}

    return {
        "games": part.games,
        "workers": part.workers,
        "steps_per_s": medians(0),
        "steps_per_cpu_s": medians(1),
        "times": {name: times(name, 0) for name in part.against},
        "times_per_cpu": {name: times(name, 1) for name in part.against},
        "rounds": found,
    }


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", default="", help="parts whose name begins so")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of every turn")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    record: dict[str, Any] = {"machine": machine_info(), "cores": cores(), "parts": {}}
    for name, part in parts(cores()).items():
        if not name.startswith(given.only):
            continue
        found = record["parts"][name] = measure(part, given.rounds, given.seconds)
        if not given.json:
            print(f"{name} ({part.games} games, {part.workers} workers)")
            for who, steps in found["steps_per_s"].items():
                work = 1e6 / found["steps_per_cpu_s"][who]
                line = f"  {who:26s} {steps:10,.0f} steps/s, {work:7,.0f} us of work each"
                if who in found["times"]:
                    line += f"   ours: {found['times'][who]:.2f}x"
                    line += f", {found['times_per_cpu'][who]:.2f}x per work"
                print(line, flush=True)
    if given.json:
        print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
