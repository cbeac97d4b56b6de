"""One round of a learner, a rollout and its update, timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch

from sparring.errors import ConfigError
from sparring.learn.learner import Learner, Measured
from sparring.learn.opponents import TakesOpponents
from sparring.learn.plan import Plan
from sparring.measuring.usage import cpu_s
from sparring.nets.make import make_net


@dataclass(frozen=True)
class Round:
    """A rollout and its update."""

    seconds: float
    decisions: int
    """The learner's own. Opponents, bots and forced moves are not among them."""
    samples: int
    """Decisions that were learned from."""
    forced: int
    """Moves of any seat that were played without asking, because there was only one."""
    games: int
    optimiser_steps: int
    phases: dict[str, float]
    """Seconds by phase."""
    gpu_busy: float = 0.0
    """Share of the time that a GPU which has everything was at work."""
    cpu_s: float = 0.0
    """Time on cores, of all threads of this process and of those that work for it."""
    opponent_rows: int = 0
    """Rows that frozen opponents answered."""

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def measure_round(learner: Learner, *, free: bool = False, helpers: Sequence[int] = ()) -> Round:
    """Collect and update once, with real games or with games that cost nothing.

    helpers: processes that work for this one; their time on cores counts.
    """
    learner.phases.take()
    answered = answered_by_opponents(learner)
    started, cpu = time.perf_counter(), cpu_s(helpers)
    if free:
        assert isinstance(learner, Measured)
        reports = learner.rehearse()
    else:
        reports = learner.iterate(0.0)
    seconds, busy_s = time.perf_counter() - started, cpu_s(helpers) - cpu
    phases = learner.phases.take()
    at_work = sum(phases.values())
    if free and at_work:
        seconds = at_work  # without putting back what it changed
    phases["other"] = phases.get("other", 0.0) + max(seconds - at_work, 0.0)

    def total(name: str) -> int:
        return int(sum(report.stats.get(name, 0.0) for report in reports))

    return Round(
        seconds,
        total("learning/decisions"),
        total("learning/samples"),
        total("charts/forced"),
        total("charts/games"),
        int(reports[0].stats.get("learning/optimiser_steps", 0)),
        phases,
        reports[0].stats.get("charts/gpu_busy", 0.0),
        busy_s,
        answered_by_opponents(learner) - answered,
    )


def answered_by_opponents(learner: Learner) -> int:
    """Return how many rows frozen opponents have answered so far; a population has several."""
    counted = getattr(getattr(learner, "collector", learner), "opponent_rows", 0)
    return sum(counted) if isinstance(counted, list) else int(counted)


def fill_slots(learner: Learner, plan: Plan) -> None:
    """Put another fresh network into every slot; all are drawn alike."""
    if not isinstance(learner, TakesOpponents) or not isinstance(learner, Measured):
        raise ConfigError("this learner takes no frozen opponents")
    for slot in range(1, plan.cast.slots + 1):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1_000_000 + slot)
            weights = make_net(plan.rules, plan.net, roles=plan.role_nets).state_dict()
        for member in range(len(plan.seeds)):
            learner.put(slot, weights, greedy=plan.cast.greedy, member=member)
    everyone = dict.fromkeys(range(1, plan.cast.past_slots + 1), 1.0)
    for member in range(len(plan.seeds)):
        learner.set_pots(dict.fromkeys(plan.cast.pots, everyone), member)
    learner.pool.reset()


def spread(values: Sequence[float], digits: int) -> dict[str, Any]:
    """Return median, range and all values."""
    rounded = [round(value, digits or None) for value in values]
    middle = round(median(values), digits or None)
    return {"median": middle, "min": min(rounded), "max": max(rounded), "rounds": rounded}
