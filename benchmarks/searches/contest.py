"""Both sides search in turn; whatever one of them does, the other waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from threading import Timer
from typing import Any

from peers.contest import ratio, spread
from searches.cases import FREE, NETWORK, SEARCH, WORKS, Case
from sides.cores import pinned, threads_for

FOLDER = Path(__file__).parents[1]
OURS, PEER = "sparring", "mctx"
RATES = {SEARCH: "simulations_per_s", NETWORK: "network_rows_per_s", FREE: "free_per_s"}
MODULES = {OURS: "searches.ours", PEER: "searches.with_mctx"}


class Process:
    """One side, in a process of its own."""

    def __init__(self, name: str, python: str, case: Case, limit_s: float) -> None:
        """Start it; JAX has as many threads as it is given cores."""
        self.name, self.limit_s = name, limit_s
        variables = {
            "JAX_PLATFORMS": case.device,
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            **threads_for(case.threads),
        }
        before = sorted(os.sched_getaffinity(0))
        if case.device == "cpu":
            pinned(before[: case.threads])
        self.process = subprocess.Popen(
            [python, "-m", MODULES[name], json.dumps(asdict(case))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=FOLDER,
            env=os.environ | variables,
        )
        pinned(before)

    def ask(self, line: str) -> dict[str, Any] | None:
        """Send a request."""
        assert self.process.stdin
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        return self.answer()

    def answer(self) -> dict[str, Any] | None:
        """Wait for the reply; None if the process ended, or took too long and was ended."""
        assert self.process.stdout
        timer = Timer(self.limit_s, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            print(f"{self.name} stopped with code {self.process.wait()}", file=sys.stderr)
            return None
        reply: dict[str, Any] = json.loads(line)
        return reply

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def contest(
    case: Case, pythons: dict[str, str], *, rounds: int, seconds: float, clock: str, limit_s: float
) -> dict[str, Any]:
    """Let both sides do every work in turn, `rounds` times; a side that fails has no figures."""
    record: dict[str, Any] = {"case": asdict(case), "network": case.network}
    taken: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        running = {}
        for name, python in pythons.items():  # one after the other: compiling takes all cores
            print(f"{case.game}: {name} prepares", file=sys.stderr)
            side = Process(name, python, case, limit_s)
            stack.callback(side.close)
            if facts := side.answer():
                running[name], record[name] = side, facts
                taken[name] = {work: [] for work in WORKS}
        for number in range(rounds):
            print(f"{case.game}: round {number + 1} of {rounds}", file=sys.stderr)
            order = list(running)[:: 1 if number % 2 else -1]
            for work in WORKS:
                for name in order:
                    if found := running[name].ask(f"{work} {seconds}"):
                        taken[name][work].append(found[clock])
    for name, works in taken.items():
        if all(len(found) == rounds for found in works.values()):
            record[name] |= figures_of(case, record[name], works)
    if all("simulations_per_s" in record.get(name, {}) for name in (OURS, PEER)):
        record["ratio"] = compare(record)
    return record


def figures_of(
    case: Case, facts: dict[str, Any], taken: dict[str, list[float]]
) -> dict[str, dict[str, Any]]:
    """Return rates by work, and the share of a search's time that its network would take alone."""
    made = case.batch * case.simulations
    counts = {work: facts["rows"] if work == NETWORK else made for work in WORKS}
    found = {
        name: spread([counts[work] / seconds for seconds in taken[work]])
        for work, name in RATES.items()
    }
    pairs = zip(taken[NETWORK], taken[SEARCH], strict=True)
    return found | {"share": spread([alone / whole for alone, whole in pairs], 3)}


def compare(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Compare round by round, so that a busy moment hits both sides."""
    return {name: ratio(record[OURS][name], record[PEER][name]) for name in RATES.values()}
