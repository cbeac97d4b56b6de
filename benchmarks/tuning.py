"""How near `sparring tune` comes to the best of a grid of 24 settings, and in how much less time.

python benchmarks/tuning.py                                   tic_tac_toe on a CPU
python benchmarks/tuning.py --game skull_king --json tuning.json
python benchmarks/tuning.py --game skull_king --device cuda

Every point of the grid is opened and timed for the same time (--seconds). Then the search has the
same 24 points before it and at most --share of the time that the grid took, processes included. In
the end the best three of the grid and what the search chose are timed in turn; the medians are
compared, so that luck of the grid does not count. On a CPU the grid is over games, minibatch and
threads; on a GPU, where threads have nothing to do, over games, steps and minibatch.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparring.sweep.hparams import GAMES, MINIBATCH, STEPS, THREADS, TuneCandidate, hparam

from sparring.config.tools import TuneConfig
from sparring.machine import cores, machine_info, warn_if_busy
from sparring.speed.rounds import steady
from sparring.speed.timer import TimerProcess, UnfitError
from sparring.sweep.grid import Grid, make_grid
from sparring.sweep.speed_search import SpeedSearch
from sparring.sweep.timings import SearchBudget, Timings, rate_of

FACTORS: dict[str, dict[str, tuple[float, ...]]] = {
    "cpu": {GAMES: (0.5, 1, 2, 4), "minibatch": (0.25, 1, 4)},
    "cuda": {GAMES: (0.25, 0.5, 1, 2), STEPS: (0.25, 0.5, 1), "minibatch": (1, 2)},
}
"""Of the preset's own values; on a CPU each with one thread and with all of them."""
FINALISTS = 3


def grid_of(game: str, device: str) -> Grid:
    """The 24 points that both have before them."""
    grid = make_grid(TuneConfig(game, device=device))
    hparams = {one.name: one for one in grid.hparams}
    kind = "cpu" if grid.base.device == "cpu" else "cuda"
    found = []
    for word, factors in FACTORS[kind].items():
        name = MINIBATCH[grid.base.algo] if word == "minibatch" else word
        start = int(hparams[name].start)
        found.append(hparam(name, tuple(int(start * factor) for factor in factors), start))
    if kind == "cpu":
        most = int(hparams[THREADS].start) if THREADS in hparams else cores()
        found.append(hparam(THREADS, (1, max(most, 2)), max(most, 2)))
    return replace(grid, hparams=tuple(found))


def points_of(grid: Grid) -> list[TuneCandidate]:
    """All points of the grid."""
    names = [one.name for one in grid.hparams]
    values = itertools.product(*(one.choices for one in grid.hparams))
    return [TuneCandidate(tuple(zip(names, one, strict=True))) for one in values]


def time_grid(grid: Grid, seconds: float) -> tuple[dict[TuneCandidate, float], float]:
    """Time every point alone and alike; return the rates, and how long it all took."""
    began, rates = time.monotonic(), dict[TuneCandidate, float]()
    with TimerProcess() as timer:
        for number, point in enumerate(points_of(grid)):
            try:
                timer.open("point", steady(grid.config(point)))
                rates[point] = rate_of(timer.time("point", seconds))
                timer.close("point")
            except UnfitError as wrong:
                print(f"  {point.describe_changes(grid.preset)}: {wrong}", file=sys.stderr)
            told = point.describe_changes(grid.preset) or "preset"
            echo(f"grid {number + 1}/24: {told}: {rates.get(point, 0):,.0f} decisions/s")
    return rates, time.monotonic() - began


def in_turn(
    grid: Grid, points: list[TuneCandidate], seconds: float, turns: int
) -> dict[TuneCandidate, list[float]]:
    """Time some points one after the other, again and again; who begins changes."""
    found: dict[TuneCandidate, list[float]] = {point: [] for point in points}
    with TimerProcess() as timer:
        timings = Timings(timer, grid, room=grid.memory_limit)
        for turn in range(turns + 1):
            for point in points[:: 1 if turn % 2 else -1]:
                rate = timings.time(point, seconds)
                if turn:  # the first one opens and warms up
                    found[point].append(rate)
    return found


def compare(args: argparse.Namespace) -> dict[str, Any]:
    """Grid, search, and both against each other."""
    grid = grid_of(args.game, args.device)
    with TimerProcess() as timer:  # kernels are compiled and caches filled before anybody is timed
        timer.open("warm", steady(grid.config(grid.preset)))
    rates, grid_s = time_grid(grid, args.seconds)
    echo(f"grid: {grid_s:.1f} s")
    began = time.monotonic()
    with TimerProcess() as timer:
        budget = SearchBudget(0.98 * args.share * grid_s)  # ending takes a moment, too
        watch = lambda doing: echo(f"tune {budget.elapsed_s:.0f} s: {doing}")  # noqa: E731
        outcome = SpeedSearch(timer, grid, budget, room=grid.memory_limit, watch=watch).run()
    tune_s = time.monotonic() - began
    ordered = sorted(rates, key=lambda point: rates[point], reverse=True)
    echo(f"tune: {tune_s:.1f} s; {outcome.best.describe_changes(grid.preset) or 'preset'}")
    finalists = list(dict.fromkeys([*ordered[:FINALISTS], outcome.best, grid.preset]))
    timed = in_turn(grid, finalists, args.seconds / 2, args.turns)
    medians = {point: statistics.median(found) for point, found in timed.items()}
    best = max(ordered[:FINALISTS], key=lambda point: medians[point])
    pairs = [a / b for a, b in zip(timed[outcome.best], timed[best], strict=True)]
    return {
        "benchmark": "tuning",
        "game": args.game,
        "device": grid.base.device,
        "share_of_best": round(medians[outcome.best] / medians[best], 4),
        "share_by_turn": [round(pair, 4) for pair in pairs],
        "share_of_time": round(tune_s / grid_s, 4),
        "grid_s": round(grid_s, 1),
        "tune_s": round(tune_s, 1),
        "seconds_per_point": args.seconds,
        "grid_best": dict(best),
        "chosen": dict(outcome.best),
        "preset_of_best": round(medians[grid.preset] / medians[best], 4),
        "timed": len([trial for trial in outcome.trials if trial.gain]),
        "grid": [{**point, "decisions_per_s": round(rates[point])} for point in rates],
        "in_turn": [
            {**point, "decisions_per_s": [round(rate) for rate in found]}
            for point, found in timed.items()
        ],
        "search": outcome.plain(),
        "machine": machine_info(),
    }


def echo(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Read the options, compare, and report."""
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("--game", default="tic_tac_toe")
    reader.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    reader.add_argument("--seconds", type=float, default=4.0, help="of every point of the grid")
    reader.add_argument("--share", type=float, default=0.3, help="of the grid's time, at most")
    reader.add_argument("--turns", type=int, default=5, help="of the comparison in the end")
    reader.add_argument("--json", nargs="?", const="-", help="write the report, to a file if named")
    args = reader.parse_args()
    warnings.simplefilter("always")
    warn_if_busy(machine_info()["load_average"])
    report = compare(args)
    if args.json == "-":
        print(json.dumps(report, indent=2))
    elif args.json:
        Path(args.json).write_text(json.dumps(report, indent=2) + "\n")
    echo(
        f"{args.game} on {report['device']}: {report['share_of_best']:.3f} of the grid's best "
        f"(turns {min(report['share_by_turn']):.3f}..{max(report['share_by_turn']):.3f}) in "
        f"{report['share_of_time']:.2f} of its time; the preset has {report['preset_of_best']:.3f}"
    )


if __name__ == "__main__":
    main()
