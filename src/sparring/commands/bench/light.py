"""The line of `sparring bench train` about the machine: which share a training reaches of it."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from sparring.config import TrainConfig
from sparring.learn.learner import Measured
from sparring.learn.plan import Plan
from sparring.training.meter.meter import meter_of
from sparring.training.metering import subject_of
from sparring.training.planning.training import run_plan

ROUNDS = 4
"""That are looked at, the first of which only warms up."""
LEARNS_OTHERWISE = "another minibatch changes what is learned, not only the speed"


def machine_share(settings: TrainConfig, plan: Plan, learner: Measured) -> dict[str, Any]:
    """Play and learn a few rounds more; return the share that they reach, and the line."""
    meter = meter_of(subject_of(run_plan(settings), plan, learner), measure=True)
    reached = None
    for _ in range(ROUNDS):
        learner.phases.take()
        started = time.perf_counter()
        reports = learner.iterate(0.0)
        took = time.perf_counter() - started
        phases = learner.phases.take()
        phases["other"] = max(took - sum(phases.values()), 0.0)
        reached = meter.look(reports, took, phases) or reached
    if reached is None or meter.ceilings is None:
        why = reached.unknown if reached else "there was no room to measure the machine"
        return {"share": None, "line": f"share of this machine unknown: {why}"}
    return {
        "share": round(reached.share, 4),
        "bound": reached.bound,
        "advice": asdict(reached.advice) if reached.advice else None,
        "ceilings": asdict(meter.ceilings),
        "line": reached.line,
    }


def share_lines(found: dict[str, Any]) -> list[str]:
    """The line, and what to know about its advice."""
    told = [str(found["line"])]
    return [*told, f"({LEARNS_OTHERWISE})"] if found.get("advice") else told
