"""How stepping from Python scales over threads, against random play inside C++, in one run.

python benchmarks/threads.py                    Skull King, one and two threads
python benchmarks/threads.py --threads 8        one and eight
python benchmarks/threads.py --json FILE        ... and keep what was measured
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

from sparring.games import game_names
from sparring.machine import machine_facts, warn_if_busy
from sparring.pools import Pool


def in_cpp(pool: Pool, steps: int) -> float:
    """Seconds of random play inside C++."""
    return pool.run_random(steps)


def in_python(pool: Pool, steps: int) -> float:
    """Seconds of the same play, stepped from Python."""
    started = time.perf_counter()
    for _ in range(steps):
        pool.step(pool.sample_actions())
    return time.perf_counter() - started


DRIVERS = {"C++": in_cpp, "Python": in_python}


def measure(game: str, games: int, threads: int, seconds: float, turn_s: float) -> dict[str, Any]:
    """Take turns, a short one each, so that a busy moment hits all alike; ratios by turn."""
    crews = [(driver, count) for count in (1, threads) for driver in DRIVERS]
    pools = {crew: Pool(game, games, seed=1, threads=crew[1]) for crew in crews}
    for pool in pools.values():
        pool.reset()
    steps = max(1, int(turn_s * 200 / pools[crews[0]].run_random(200)))
    rounds: list[dict[tuple[str, int], float]] = []
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends or not rounds:
        rounds.append({crew: DRIVERS[crew[0]](pools[crew], steps) for crew in crews})
    speedups = {
        driver: median(round_[driver, 1] / round_[driver, threads] for round_ in rounds)
        for driver in DRIVERS
    }
    best = {
        driver: min(r[driver, 1] for r in rounds) / min(r[driver, threads] for r in rounds)
        for driver in DRIVERS
    }
    shares = [r["C++", threads] / r["Python", threads] for r in rounds]
    return {
        "game": game,
        "games": games,
        "threads": threads,
        "rounds": len(rounds),
        "steps": steps,
        "speedup": speedups,
        "speedup_of_best_turns": best,
        "python_speedup_share": median(
            r["Python", 1] / r["Python", threads] / (r["C++", 1] / r["C++", threads])
            for r in rounds
        ),
        "python_rate_share": median(shares),
        "us_per_step": {
            f"{driver}, {count}": median(r[driver, count] for r in rounds) / steps * 1e6
            for driver, count in crews
        },
    }


def main() -> None:
    """Read options, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", default="skull_king", choices=game_names())
    parser.add_argument("--games", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--turn-s", type=float, default=0.02, help="length of a turn")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    facts = machine_facts()
    warn_if_busy(facts["load_average"])
    found = measure(given.game, given.games, given.threads, given.seconds, given.turn_s)
    print(
        f"{found['game']}, {found['games']} games, {found['rounds']} turns of {found['steps']} "
        f"steps each: {found['threads']} threads are {found['speedup']['Python']:.3f}x one from "
        f"Python, {found['speedup']['C++']:.3f}x inside C++, {found['python_speedup_share']:.1%} "
        "of it by turn (medians)"
    )
    best = found["speedup_of_best_turns"]
    print(f"best turns: {best['Python']:.3f}x and {best['C++']:.3f}x")
    print(", ".join(f"{name}: {us:.1f} us/step" for name, us in found["us_per_step"].items()))
    if given.json:
        given.json.write_text(json.dumps({"machine": facts, **found}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
