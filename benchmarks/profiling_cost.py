"""What looking at a training costs it: windows with and without py-spy on one run, in turn.

    python benchmarks/profiling_cost.py                  # as sparring profile looks at a run
    python benchmarks/profiling_cost.py --rate 25 --native --windows 12 --json

Each window with py-spy is held against the two without beside it, so that a machine which gets
slower or faster meanwhile does not matter; the figure is the median of these ratios. A window
begins when py-spy looks, and what it does before (reading symbols) is told apart as the start.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import pairwise
from statistics import median
from typing import Any

from sparring.machine import machine_facts
from sparring.profiling.own import OwnTraining
from sparring.profiling.progress import Progress
from sparring.profiling.spy import Spy
from sparring.training.train import complete


def main() -> None:
    """Measure and print."""
    options = read_options()
    changes: dict[str, Any] = {"eval": {"off": True}, "collect": {"games": options.games}}
    changes["net"] = {"hidden": (options.hidden,)}
    if options.threads:
        changes["threads"] = options.threads
    with OwnTraining(complete(options.game, "", changes)) as training:
        progress = Progress(training.folder)
        training.warm_up(progress, 5.0, lambda _: None)
        found = measure(training, progress, options)
    report = {**vars(options), **found, "machine": machine_facts()}
    if options.json:
        print(json.dumps(report, indent=2))
        return
    low, high = min(found["ratios"]), max(found["ratios"])
    print(f"{found['plain']:,.0f} decisions/s without, {found['sampled']:,.0f} with py-spy")
    print(
        f"sampling costs {1 - found['ratio']:.1%} (median of {len(found['ratios'])} windows, "
        f"{1 - high:.1%} .. {1 - low:.1%}); py-spy takes {found['start_s']:.1f} s to begin"
    )


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", default="skull_king")
    parser.add_argument("--games", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a window")
    parser.add_argument("--windows", type=int, default=6, help="those with py-spy")
    parser.add_argument("--rate", type=int, default=20)
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--pausing", action="store_true", help="stop it for every look")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure(
    training: OwnTraining, progress: Progress, options: argparse.Namespace
) -> dict[str, Any]:
    """Alternate windows without and with py-spy; the first and the last are without."""
    windows: list[tuple[bool, float, float]] = []
    starts = []
    for turn in range(2 * options.windows + 1):
        if turn % 2 == 0:
            windows.append((False, *wait(progress, training, options.seconds)))
            continue
        asked = time.monotonic()
        with Spy(
            training.pid,
            options.seconds,
            options.rate,
            native=options.native,
            pausing=options.pausing,
        ) as spy:
            spy.wait_begun()
            wait(progress, training, 0.5)
            starts.append(time.monotonic() - asked)
            windows.append((True, *wait(progress, training, options.seconds)))
            spy.stacks()
        wait(progress, training, 0.5)
    wait(progress, training, 2.0)  # until the last of the curves can be read
    rates = [progress.pace(began, ended).decisions_per_s for _, began, ended in windows]
    plain, sampled = rates[0::2], rates[1::2]
    ratios = [
        with_it / ((before + after) / 2)
        for with_it, (before, after) in zip(sampled, pairwise(plain), strict=True)
    ]
    return {
        "ratio": median(ratios),
        "ratios": ratios,
        "plain": median(plain),
        "sampled": median(sampled),
        "start_s": median(starts),
    }


def wait(progress: Progress, training: OwnTraining, seconds: float) -> tuple[float, float]:
    """Let it train, and return the window."""
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        training.check()
        progress.look()
        time.sleep(0.1)
    return began, time.monotonic()


if __name__ == "__main__":
    main()
