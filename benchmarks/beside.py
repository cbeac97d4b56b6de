"""One training with something beside it, in turn: what that costs, free of a drifting machine.

Windows without it and with it alternate, the first and the last are without, and each window with
it is held against the two that it lies between.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import median
from typing import Any

from sparring.machine import machine_facts
from sparring.profiling.own import OwnTraining
from sparring.profiling.progress import Progress
from sparring.training.train import complete

Window = tuple[float, float]


class Run:
    """A training that goes on all the time."""

    def __init__(self, training: OwnTraining) -> None:
        self.training, self.progress = training, Progress(training.folder)
        self.training.warm_up(self.progress, 5.0, lambda _: None)

    def wait(self, seconds: float) -> Window:
        """Let it train, and return the window."""
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            self.training.check()
            self.progress.look()
            time.sleep(0.1)
        return began, time.monotonic()

    def alternate(
        self, options: argparse.Namespace, beside: Callable[[], Window]
    ) -> dict[str, Any]:
        """Return rates and their ratios. beside: starts it, waits for a window with it, ends it."""
        windows = [self.wait(options.seconds)]
        for _ in range(options.windows):
            windows.append(beside())
            self.wait(0.5)
            windows.append(self.wait(options.seconds))
        self.wait(2.0)  # until the last of the curves can be read
        rates = [self.progress.pace(*window).decisions_per_s for window in windows]
        alone, with_it = rates[0::2], rates[1::2]
        if not all(alone):
            raise SystemExit("no update ended in a window; give longer ones with --seconds")
        ratios = [
            rate / ((before + after) / 2)
            for rate, (before, after) in zip(with_it, pairwise(alone), strict=True)
        ]
        return {
            "ratio": median(ratios),
            "ratios": ratios,
            "alone": median(alone),
            "beside": median(with_it),
        }


def read_options(parser: argparse.ArgumentParser, seconds: float) -> argparse.Namespace:
    """Read the command line, with what all of these take."""
    parser.add_argument("--game", default="skull_king")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=seconds, help="length of a window")
    parser.add_argument("--windows", type=int, default=6, help="those with it")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def report(
    options: argparse.Namespace,
    changes: Mapping[str, Any],
    measure: Callable[[Run], dict[str, Any]],
    *,
    name: str,
    more: Callable[[dict[str, Any]], str],
) -> None:
    """Train, measure and print. more: what else there is to say about what was found."""
    settings: dict[str, Any] = {"eval": {"off": True}, **changes}
    if options.threads:
        settings["threads"] = options.threads
    with OwnTraining(complete(options.game, "", settings)) as training:
        found = measure(Run(training))
    if options.json:
        print(json.dumps({**vars(options), **found, "machine": machine_facts()}, indent=2))
        return
    low, high = min(found["ratios"]), max(found["ratios"])
    print(f"{found['alone']:,.0f} decisions/s alone, {found['beside']:,.0f} with {name}")
    print(
        f"{name} costs {1 - found['ratio']:.1%} (median of {len(found['ratios'])} windows, "
        f"{1 - high:.1%} .. {1 - low:.1%}); {more(found)}"
    )
