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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from beside import Run, Window, read_options, report
from sparring.machine import cores

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
    options = read_options(argparse.ArgumentParser(description=__doc__), seconds=6.0)
    report(
        options,
        {},
        lambda run: measure(run, options),
        name="a server with two viewers",
        more=lambda found: f"it takes {found['cpu_share']:.2%} of {cores()} cores",
    )


def measure(run: Run, options: argparse.Namespace) -> dict[str, Any]:
    """Serve the run in every other window."""
    shares, events = [], []

    def serve() -> Window:
        with watched(run.training.folder) as (pid, viewers):
            run.wait(1.5)
            before = cpu_seconds(pid)
            began, ended = run.wait(options.seconds)
            shares.append((cpu_seconds(pid) - before) / (ended - began) / cores())
            events.append(sum(viewer.events for viewer in viewers))
        return began, ended

    found = run.alternate(options, serve)
    return {**found, "cpu_share": median(shares), "events": events}


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


if __name__ == "__main__":
    main()
