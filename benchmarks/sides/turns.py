"""Sides of a comparison, each in a child process, timed in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO, Any

from sides.cores import pinned, threads_for
from sides.words import read_side
from sparring.errors import ConfigError, SparringError

SCRIPT = Path(__file__).parent / "learner.py"


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a source tree and settings."""

    name: str
    tree: Path
    words: str = ""
    """Settings and variables, see `read_side`."""


@dataclass(frozen=True)
class Terms:
    """Settings that all sides share."""

    game: str
    file: str
    common: str
    """Settings of all sides, in front of their own."""
    threads: int
    cores: tuple[int, ...]
    warm_up: int


class Process:
    """A side that is open."""

    def __init__(self, side: Side, terms: Terms) -> None:
        """Start it; the learner is made by `answer`."""
        self.side = side
        settings, variables = read_side(f"{terms.common} {side.words}")
        before = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        pinned(terms.cores or before)
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(side.tree)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads_for(terms.threads), **variables},
        )
        pinned(before)
        assert self._process.stdin and self._process.stdout
        self._requests: IO[str] = self._process.stdin
        self._answers: IO[str] = self._process.stdout
        request = {"game": terms.game, "file": terms.file, "settings": settings}
        self.ask(json.dumps({**request, "threads": terms.threads, "warm_up": terms.warm_up}))

    def ask(self, line: str) -> None:
        """Send a request."""
        self._requests.write(f"{line}\n")
        self._requests.flush()

    def answer(self) -> dict[str, Any]:
        """Wait for the reply."""
        line = self._answers.readline()
        if not line:
            code = self._process.wait()
            raise SparringError(f"{self.side.name}: its process ended with code {code}")
        told: dict[str, Any] = json.loads(line)
        if "refused" in told:
            raise ConfigError(f"{self.side.name}: {told['refused']}")
        return told

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def take_turns(
    sides: Sequence[Side], terms: Terms, *, rounds: int, seconds: float
) -> list[dict[str, Any]]:
    """Time all sides in turn; who begins changes. Returns facts and turns of each."""
    turns: list[list[dict[str, Any]]] = [[] for _ in sides]
    with ExitStack() as stack:
        running = []
        facts = []
        for side in sides:  # one after the other: making a learner warms up on all cores
            running.append(Process(side, terms))
            stack.callback(running[-1].close)
            facts.append(running[-1].answer())
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
            for step in range(len(sides)):
                at = (number + step) % len(sides)
                running[at].ask(str(seconds))
                turns[at].append(running[at].answer())
    return [
        {"name": side.name, "settings": side.words, "tree": str(side.tree), **fact, "turns": own}
        for side, fact, own in zip(sides, facts, turns, strict=True)
    ]


def spread(values: Sequence[float | None]) -> dict[str, float] | None:
    """Median and range; None where a value is missing."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return {"median": median(known), "min": min(known), "max": max(known)}


def summed_up(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add medians, ratios to the first side in the same round, and shares of `a @ b`.

    What that reaches is a ceiling: the best of all turns counts, whoever's they were.
    """
    first = found[0]["turns"]
    best = max(turn["matmul_float32"] for one in found for turn in one["turns"])
    for one in found:
        turns = one["turns"]
        for key in turns[0]:
            one[key] = spread([turn[key] for turn in turns])
        for key, name in (("samples_per_s", "ratio"), ("gflops", "update_ratio")):
            pairs = [(turn[key], base[key]) for turn, base in zip(turns, first, strict=True)]
            one[name] = spread([mine and base and mine / base for mine, base in pairs])
        for key in ("gflops", "gflops_dense"):
            one[f"{key}_share"] = one[key] and one[key]["median"] / best
    return list(found)
