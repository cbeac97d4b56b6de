"""What looking at a training costs it: windows with and without py-spy on one run, in turn.

    python benchmarks/profiling_cost.py                  # as sparring profile looks at a run
    python benchmarks/profiling_cost.py --rate 25 --native --windows 12 --json

Each window with py-spy is held against the two without beside it, so that a machine which gets
slower or faster meanwhile does not matter; the figure is the median of these ratios. A window
begins when py-spy looks, and what it does before (reading symbols) is told apart as the start.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any

from beside import Run, Window, read_options, report
from sparring.profiling.spy import Spy


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--rate", type=int, default=20)
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--pausing", action="store_true", help="stop it for every look")
    options = read_options(parser, seconds=4.0)
    report(
        options,
        {"collect": {"games": options.games}, "net": {"hidden": (options.hidden,)}},
        lambda run: measure(run, options),
        name="py-spy",
        more=lambda found: f"it takes {found['start_s']:.1f} s to begin",
    )


def measure(run: Run, options: argparse.Namespace) -> dict[str, Any]:
    """Sample the run in every other window."""
    starts = []

    def sample() -> Window:
        asked = time.monotonic()
        with Spy(
            run.training.pid,
            options.seconds,
            options.rate,
            native=options.native,
            pausing=options.pausing,
        ) as spy:
            spy.wait_begun()
            run.wait(0.5)
            starts.append(time.monotonic() - asked)
            window = run.wait(options.seconds)
            spy.stacks()
        return window

    found = run.alternate(options, sample)
    return {**found, "start_s": median(starts)}


if __name__ == "__main__":
    main()
