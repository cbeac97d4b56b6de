"""What both sides of search_peers.py search, and how they are asked.

A side is a process, so that each has its own Python and its own threads. This file needs neither
sparring nor JAX.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

OPENING_MOVES = 4
"""Random moves before the searched positions."""
SEARCH, NETWORK, FREE = "search", "network", "free"
WORKS = (SEARCH, NETWORK, FREE)
"""A search; its evaluations without trees; a search whose evaluator returns zeros."""


@dataclass(frozen=True)
class Case:
    """One comparison: the same trees over networks of the same shape."""

    game: str
    device: str
    """cpu or cuda"""
    batch: int
    """Trees that are searched at once."""
    threads: int
    simulations: int = 32
    considered: int = 16
    hidden: tuple[int, ...] = (256, 256)
    """Of a perceptron, if there are no channels."""
    channels: int = 0
    blocks: int = 0
    bf16: bool = False
    seed: int = 1

    @property
    def network(self) -> str:
        if self.channels:
            return f"residual {self.channels} x {self.blocks}"
        return "-".join(map(str, self.hidden))


class Side(Protocol):
    """One of the two libraries, ready to search."""

    facts: dict[str, Any]
    works: dict[str, Callable[[], Any]]
    """Each is done when it returns."""


def serve(make: Callable[[Case], Side]) -> None:
    """Answer each line of the input, a work and seconds to repeat it, with a line of JSON."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
    began = time.perf_counter()
    given = json.loads(sys.argv[1])
    side = make(Case(**{**given, "hidden": tuple(given["hidden"])}))
    for work in side.works.values():
        work()
    facts = {**side.facts, "prepare_s": round(time.perf_counter() - began, 1)}
    print(json.dumps(facts), file=answers, flush=True)
    for line in sys.stdin:
        name, seconds = line.split()
        print(json.dumps(timed(side.works[name], float(seconds))), file=answers, flush=True)


def timed(work: Callable[[], Any], seconds: float) -> dict[str, float]:
    """Repeat some work for a time, at least once; return how long one repetition took.

    wall: by the clock. cpu: seconds of all threads, which others on the machine do not lengthen.
    """
    times, wall, cpu = 0, time.perf_counter(), time.process_time()
    while not times or time.perf_counter() - wall < seconds:
        work()
        times += 1
    return {
        "wall": (time.perf_counter() - wall) / times,
        "cpu": (time.process_time() - cpu) / times,
    }
