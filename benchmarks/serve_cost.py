"""What watching a training in a browser costs it: windows with and without `sparring serve`.

    python benchmarks/serve_cost.py
    python benchmarks/serve_cost.py --game skull_king --windows 12 --seconds 10 --json

One training goes on all the time. In every other window a server runs beside it with two viewers,
one of all runs and one of this run; each such window is held against the two without beside it,
and the figure is the median of these ratios. What the server's own process takes of the machine is
told as well, which noise hides less.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from sparring.machine import cores, machine_facts
from sparring.profiling.own import OwnTraining
from sparring.profiling.progress import Progress
from sparring.training.train import complete

TICKS = os.sysconf("SC_CLK_TCK")


class Viewer:
    """Somebody with a page open: reads a stream."""

    def __init__(self, address: str, path: str) -> None:
        self.events = 0
        self._connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
        self._connection.request("GET", path)
        self._stream = self._connection.getresponse()
        if self._stream.status != 200:
            raise RuntimeError(f"{path}: {self._stream.status}")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        # Errors: the server has ended.
        with suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            for line in self._stream:
                self.events += line.startswith(b"event:")


def main() -> None:
    """Measure and print."""
    options = read_options()
    changes: dict[str, Any] = {"eval": {"off": True}}
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
    print(f"{found['alone']:,.0f} decisions/s alone, {found['watched']:,.0f} while two watch")
    print(
        f"watching costs {1 - found['ratio']:.1%} (median of {len(found['ratios'])} windows, "
        f"{1 - high:.1%} .. {1 - low:.1%}); the server takes {found['cpu_share']:.2%} of "
        f"{cores()} cores"
    )


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", default="skull_king")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=6.0, help="length of a window")
    parser.add_argument("--windows", type=int, default=6, help="those with a server")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure(
    training: OwnTraining, progress: Progress, options: argparse.Namespace
) -> dict[str, Any]:
    """Alternate windows without and with a server; the first and the last are without."""
    windows, shares, events = [], [], []
    for turn in range(2 * options.windows + 1):
        if turn % 2 == 0:
            windows.append(wait(progress, training, options.seconds))
            continue
        with watched(training.folder) as (pid, viewers):
            wait(progress, training, 1.5)
            before = cpu_seconds(pid)
            began, ended = wait(progress, training, options.seconds)
            windows.append((began, ended))
            shares.append((cpu_seconds(pid) - before) / (ended - began) / cores())
            events.append(sum(viewer.events for viewer in viewers))
        wait(progress, training, 0.5)
    wait(progress, training, 2.0)  # until the last of the curves can be read
    rates = [progress.pace(*window).decisions_per_s for window in windows]
    alone, beside = rates[0::2], rates[1::2]
    ratios = [
        with_it / ((before + after) / 2)
        for with_it, (before, after) in zip(beside, pairwise(alone), strict=True)
    ]
    return {
        "ratio": median(ratios),
        "ratios": ratios,
        "alone": median(alone),
        "watched": median(beside),
        "cpu_share": median(shares),
        "events": events,
    }


@contextmanager
def watched(run: Path) -> Iterator[tuple[int, tuple[Viewer, Viewer]]]:
    """Serve a run to two viewers."""
    words = ["serve", str(run.parent), "--port", "0", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "sparring", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            address = address_in(iter(process.stdout.readline, ""))
            yield (
                process.pid,
                (
                    Viewer(address, "/api/live"),
                    Viewer(address, f"/api/runs/{run.name}/live"),
                ),
            )
        finally:
            process.send_signal(signal.SIGINT)


def address_in(lines: Iterator[str]) -> str:
    """Return the address that a server prints as JSON, over one line or several."""
    text = ""
    for line in lines:
        text += line
        if text.rstrip().endswith("}"):
            return str(json.loads(text)["address"])
    raise RuntimeError("sparring serve did not begin")


def cpu_seconds(pid: int) -> float:
    """Return what a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


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
