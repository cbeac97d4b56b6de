"""The contest: all contestants train in turn and are compared round by round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from peers.entries import Entry, Settings

SCRIPT = Path(__file__).parents[1] / "train_vs_peers.py"


@contextmanager
def process(entry: Entry, settings: Settings) -> Iterator[subprocess.Popen[str]]:
    """Start a contestant; the thread counts are set before it imports anything."""
    count = str(settings.threads)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    words = ("--contestant", json.dumps([asdict(entry), asdict(settings)]))
    started = subprocess.Popen(
        [sys.executable, str(SCRIPT), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | dict.fromkeys(names, count),
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def answer(contestant: subprocess.Popen[str], entry: Entry, ask: str = "") -> dict[str, Any]:
    """Send a word, if any, and wait for the answer."""
    assert contestant.stdin is not None
    assert contestant.stdout is not None
    if ask:
        contestant.stdin.write(f"{ask}\n")
        contestant.stdin.flush()
    line = contestant.stdout.readline()
    if not line:
        sys.exit(f"{entry.label} stopped with code {contestant.wait()}; nothing was written")
    reply: dict[str, Any] = json.loads(line)
    return reply


def contest(field: Sequence[Entry], settings: Settings, rounds: int) -> list[dict[str, Any]]:
    """Let all train in turn, `rounds` times after a warm-up; the order alternates."""
    turns: dict[Entry, list[dict[str, Any]]] = {entry: [] for entry in field}
    free: dict[Entry, list[dict[str, Any]]] = {entry: [] for entry in field if entry.ours}
    with ExitStack() as stack:
        running = {entry: stack.enter_context(process(entry, settings)) for entry in field}
        results = [asdict(entry) | answer(running[entry], entry) for entry in field]
        for number in range(rounds + 1):
            print(f"round {number} of {rounds}" if number else "warming up", file=sys.stderr)
            first = number % len(field)
            for entry in (*field[first:], *field[:first]):
                turns[entry].append(answer(running[entry], entry, "train"))
                if entry.ours:
                    free[entry].append(answer(running[entry], entry, "ceiling"))
        for entry, result in zip(field, results, strict=True):
            proved = answer(running[entry], entry, "proof")
            result.update({key: proved[key] for key in ("games_finished", "problems")})
            result["name"] = entry.name
            result["samples_per_s"] = spread(rates(turns[entry][1:], "samples"))
            result["decisions_per_s"] = spread(rates(turns[entry][1:], "decisions"))
            if entry.ours:
                result["ceiling"] = spread(rates(free[entry][1:], "samples"))
    return results


def rates(turns: Sequence[dict[str, Any]], what: str) -> list[float]:
    """Return what was done per second, turn by turn."""
    return [turn[what] / turn["seconds"] for turn in turns]


def spread(values: Sequence[float], digits: int | None = None) -> dict[str, Any]:
    """Return median, range and all values."""
    rounded = [round(value, digits) for value in values]
    middle = round(median(values), digits)
    return {"median": middle, "min": min(rounded), "max": max(rounded), "rounds": rounded}


def ratio(mine: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Compare round by round, so that a busy moment hits both sides."""
    pairs = zip(mine["rounds"], other["rounds"], strict=True)
    return spread([a / b for a, b in pairs], 3)


def compare(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Add everybody's ratios to the best of each peer and to the own ceiling; name those best."""
    best = {}
    for kind in ("maskable", "plain"):
        mine = [result for result in results if result["kind"] == kind]
        fastest = max(mine, key=lambda result: float(result["samples_per_s"]["median"]))
        best[kind] = fastest["name"]
        for result in results:
            result[f"to_{kind}"] = ratio(result["samples_per_s"], fastest["samples_per_s"])
    for result in results:
        if "ceiling" in result:
            result["of_ceiling"] = ratio(result["samples_per_s"], result["ceiling"])
    return best
