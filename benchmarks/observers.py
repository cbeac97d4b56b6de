"""What watching costs: training with and without timers and meter, in alternating rounds.

python benchmarks/observers.py [--seconds 20] [--json] [GAME]

Three kinds of rounds take turns, each of whole updates as the training loop makes them:
bare (timers that do nothing, no meter), timers, and timers with the meter. Costs are medians of
ratios of neighbouring rounds. What the calls cost by themselves is timed besides, and divided by
the time of an update: that figure is free of the machine's noise.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from sparring.learn.learner import Learner, Report
from sparring.learn.timing import Timing
from sparring.machine import machine_facts
from sparring.meter.kept import CACHE
from sparring.meter.meter import Meter, meter_of
from sparring.training.metering import subject_of
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.runs import run_plan
from sparring.training.planning.settings import members_of
from sparring.training.train import complete

KINDS = ("bare", "timers", "meter")
ROUND_S = 0.25


class NoTiming(Timing):
    """Timers that do nothing: what the others are held against."""

    def __call__(self, name: str) -> Any:
        return NOTHING


class Nothing:
    """A `with` block without anything."""

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


NOTHING = Nothing()


class CountingTiming(Timing):
    """Counts how often time is taken."""

    calls = 0

    def __call__(self, name: str) -> Any:
        self.calls += 1
        return super().__call__(name)


def set_timing(learner: Any, timing: Timing) -> None:
    """Let a learner that plays step by step use other timers."""
    learner.phases = timing
    learner.collector.phases = timing


def one_round(learner: Learner, meter: Meter | None, updates: int) -> float:
    """Make updates as the loop does; return the seconds of each."""
    started = time.perf_counter()
    for _ in range(updates):
        at = time.perf_counter()
        reports = learner.iterate(0.0)
        took = time.perf_counter() - at
        phases = learner.phases.take()
        phases["other"] = max(took - sum(phases.values()), 0.0)
        if meter:
            meter.look(reports, took, phases)
    return (time.perf_counter() - started) / updates


def each_us(work: Callable[[], object], seconds: float = 0.2) -> float:
    """Microseconds of a call, median of bursts."""
    found = []
    until = time.perf_counter() + seconds
    while not found or time.perf_counter() < until:
        started = time.perf_counter()
        for _ in range(100):
            work()
        found.append((time.perf_counter() - started) * 1e4)
    return median(found)


def measure(game: str, seconds: float, hidden: int) -> dict[str, Any]:
    """Train in rounds of three kinds and return what the two kinds cost more than the first."""
    asked: dict[str, Any] = {"threads": 1, "device": "cpu", "net": {"hidden": (hidden,)}}
    config = complete(game, "", {**asked, "collect": {"games": 32, "steps": 32}})
    plan = resolve(members_of(config))
    learner: Any = make_learner(config, plan)
    meter = meter_of(subject_of(run_plan(config), plan, learner), measure=True)
    timings = {"bare": NoTiming(), "timers": Timing(), "meter": Timing()}
    counting = CountingTiming()
    set_timing(learner, counting)
    updates = max(round(ROUND_S / one_round(learner, None, 3)), 1)
    calls = counting.calls / 3
    rounds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    until, number = time.perf_counter() + seconds, 0
    while number < 3 or time.perf_counter() < until:
        for kind in (KINDS, KINDS[::-1])[number % 2]:
            set_timing(learner, timings[kind])
            took = one_round(learner, meter if kind == "meter" else None, updates)
            rounds[kind].append(took)
        number += 1
    set_timing(learner, Timing())
    reports, phases = learner.iterate(0.0), learner.phases.take()
    return {
        "game": game,
        "update_ms": round(1000 * median(rounds["bare"]), 3),
        "rounds": number,
        "updates_per_round": updates,
        "cost_of_timers": cost(rounds, "timers"),
        "cost_of_timers_and_meter": cost(rounds, "meter"),
        **alone(meter, reports, phases, calls, median(rounds["bare"])),
        "machine": machine_facts(),
    }


def cost(rounds: dict[str, list[float]], kind: str) -> float:
    """How much longer updates took than bare ones, median over neighbouring rounds."""
    pairs = zip(rounds[kind], rounds["bare"], strict=True)
    return round(median(mine / bare for mine, bare in pairs) - 1, 4)


def alone(
    meter: Meter, reports: list[Report], phases: dict[str, float], calls: float, update_s: float
) -> dict[str, float]:
    """What the calls of an update cost by themselves, as a share of it."""
    timing, nothing = Timing(), NoTiming()

    def timed(one: Timing) -> None:
        with one("stepping"):
            pass

    timer_us = each_us(lambda: timed(timing)) - each_us(lambda: timed(nothing))
    meter_us = each_us(lambda: meter.look(reports, update_s, phases))
    return {
        "timers_per_update": round(calls, 1),
        "timer_us": round(timer_us, 3),
        "meter_us": round(meter_us, 3),
        "share_of_timers": round(calls * timer_us / 1e6 / update_s, 6),
        "share_of_meter": round(meter_us / 1e6 / update_s, 6),
    }


def main() -> None:
    """Measure and print."""
    read = argparse.ArgumentParser()
    read.add_argument("game", nargs="?", default="tic_tac_toe")
    read.add_argument("--seconds", type=float, default=20.0)
    read.add_argument("--hidden", type=int, default=64)
    read.add_argument("--json", action="store_true")
    asked = read.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE] = folder
        found = measure(asked.game, asked.seconds, asked.hidden)
    if asked.json:
        print(json.dumps(found))
        return
    print(
        f"{found['game']}: an update takes {found['update_ms']:.2f} ms; timers cost "
        f"{found['cost_of_timers']:+.2%} of it, timers and meter "
        f"{found['cost_of_timers_and_meter']:+.2%} (medians of {found['rounds']} pairs of rounds)"
    )
    print(
        f"by themselves: {found['timers_per_update']:g} timers of {found['timer_us']:.2f} us, "
        f"{found['share_of_timers']:.3%} of an update; one look of the meter "
        f"{found['meter_us']:.1f} us, {found['share_of_meter']:.3%}"
    )


if __name__ == "__main__":
    main()
