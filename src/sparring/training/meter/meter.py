"""The meter of a run: knows the ceilings, looks at every update, says which share was reached."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import torch

from sparring.errors import SparringError
from sparring.learn.algos import LEARNERS
from sparring.learn.learner import Learner, Report
from sparring.learn.plan import CPU, Plan
from sparring.nets.net import Net
from sparring.training.meter.ceilings import (
    Place,
    can_be_stepped,
    ceilings_of,
    measure_machine,
    measure_stepping,
    stepping_name,
    stepping_of,
)
from sparring.training.meter.ceilings import names_of as names_of_ceilings
from sparring.training.meter.kept import Kept, anything_kept
from sparring.training.meter.minibatch import can_be_tried, measure_pace, pace_of
from sparring.training.meter.share import Ceilings, Done, Pace, Reached, reckon
from sparring.training.meter.work import Work, work_of
from sparring.training.planning.training import RunPlan
from sparring.usage import Beside

STRETCH_S = 0.5
"""Updates are added up for so long before the share is reckoned anew: short ones cost nothing."""
WINDOW = 16
"""Stretches that the share is of."""
MIN_MINUTES = 1.0
"""Runs of less are over before two seconds of measuring have paid."""


@dataclass(frozen=True)
class Subject:
    """What is metered."""

    plan: Plan
    algo: str
    learner: Learner
    processes: bool = False
    """Other processes play or learn as well."""

    @property
    def place(self) -> Place:
        return Place(self.plan.device, self.plan.threads)

    @property
    def precision(self) -> str:
        return "bf16" if self.plan.device != CPU and self.plan.collect.bf16 else "float32"

    @property
    def unknown(self) -> str:
        """Why its share cannot be reckoned, "" if it can."""
        if self.algo not in LEARNERS:
            return "what a learner of your own computes is its own business"
        return "several processes share the work" if self.processes else ""

    def net(self) -> Net:
        """Another network of the same kind, on the CPU."""
        return self.learner.policy().net


class Meter:
    """Looks at updates. Make one with `meter_of`."""

    def __init__(
        self,
        work: Work | None,
        ceilings: Ceilings | None,
        *,
        pace: Pace | None = None,
        unknown: str = "",
        doubt: Callable[[], None] | None = None,
        beside: Beside | None = None,
    ) -> None:
        """Take over what is known. doubt: told once that the run did more than its ceilings.

        beside: knows who else wants the cores.
        """
        self.work, self.ceilings, self.pace, self.unknown = work, ceilings, pace, unknown
        self._doubt, self._beside = doubt, beside
        self._names = {role: names_in_curves(role) for role in (work.answered if work else ())}
        self._now = Done()
        self._before: deque[Done] = deque(maxlen=WINDOW)
        self._opponent_rows: int | None = None
        self._reached: Reached | None = None

    def look(
        self, reports: Sequence[Report], seconds: float, phases: Mapping[str, float]
    ) -> Reached | None:
        """Take in an update; return how the last ones stand to the machine, None if unknown.

        The first update warms everything up and does not count.
        """
        if self.unknown:
            self._reached = self._reached or Reached(float("nan"), unknown=self.unknown)
            return self._reached
        if self.work is None or self.ceilings is None:
            return None
        before, self._opponent_rows = self._opponent_rows, sum(r.opponent_rows for r in reports)
        if before is None:
            return None
        self._add(reports, seconds, phases)
        self._now.rows += self._opponent_rows - before
        if self._reached is None or self._now.seconds >= STRETCH_S:
            self._reached = self._reckon(self.work, self.ceilings)
        return self._reached

    def _add(self, reports: Sequence[Report], seconds: float, phases: Mapping[str, float]) -> None:
        """Add up what all members did in an update, but for rows of frozen opponents."""
        now, work = self._now, self.work
        assert work
        now.seconds += seconds
        for name, spent in phases.items():
            now.phases[name] = now.phases.get(name, 0.0) + spent
        for report in reports:
            stats = report.stats
            now.rows += stats.get("learning/decisions", 0.0)
            for role, (sampled, stepped, seen) in self._names.items():
                samples = stats.get(sampled, 0.0)
                if not samples:
                    continue
                made = work.passes_made(role, samples, stats.get(stepped, 0.0))
                made *= 1 + stats.get(seen, 0.0) / samples  # examples go along in every epoch
                now.samples[role] = now.samples.get(role, 0.0) + samples
                now.passes[role] = now.passes.get(role, 0.0) + made

    def _reckon(self, work: Work, ceilings: Ceilings) -> Reached:
        """Hold the last stretches against the machine."""
        self._before.append(self._now)
        self._now, total = Done(), Done.all(self._before)
        found = reckon(total, work, ceilings)
        if found.beyond and self._doubt and len(self._before) == WINDOW:
            self._doubt()
            self._doubt = None
        if self._beside and (crowd := self._beside.crowd()):
            return replace(found, crowd=crowd)
        if self.pace is None or found.unknown:
            return found
        return replace(
            found, advice=self.pace.advice(total.phases.get("update", 0.0) / total.seconds)
        )


def names_in_curves(role: str) -> tuple[str, str, str]:
    """What curves call a role's samples, optimizer steps and examples."""
    of = f"/{role}" if role else ""
    return f"learning/samples{of}", f"learning/optimizer_steps{of}", f"learning/examples{of}"


def meter_for(run: RunPlan, plan: Plan, learner: Learner, *, quiet: bool) -> Meter:
    """Return the meter of a run. What is not kept is measured only where somebody watches."""
    kind, amount = run.budget
    watched = not quiet and kind == "minutes" and amount >= MIN_MINUTES
    return meter_of(subject_of(run, plan, learner), measure=watched, echo=echo)


def subject_of(run: RunPlan, plan: Plan, learner: Learner) -> Subject:
    return Subject(plan, run.algo, learner, processes=run.processes)


def echo(text: str) -> None:
    """Tell whoever watches."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:  # nobody is there any more
        return


def meter_of(
    subject: Subject, *, measure: bool = False, echo: Callable[[str], None] | None = None
) -> Meter:
    """Return a run's meter, from what is kept.

    measure: what is not kept yet is measured first, which takes about two seconds; echo prints it.
    """
    if subject.unknown:
        return Meter(None, None, unknown=subject.unknown)
    if not measure and not anything_kept():
        return Meter(None, None)
    kept, plan = Kept(), subject.plan
    if measure:
        kept.drop(name for name in names_of(subject) if kept.doubtful(name))
    if measure and not is_known(subject, kept):
        if echo:
            echo("measuring what this machine can do, once: about two seconds")
        # Where there is no room to measure, there is a run without a share.
        with suppress(torch.OutOfMemoryError, MemoryError, SparringError):
            measure_all(subject, kept)
    rates, stepping = ceilings_of(subject.place, kept), stepping_of(plan, kept)
    products = rates.get(subject.precision)
    if products is None or (stepping is None and can_be_stepped(plan)):
        return Meter(None, None)
    net = subject.net()
    work = work_of(plan, subject.algo, net, stepping.density if stepping else 1.0)
    if work is None:
        return Meter(None, None, unknown="the products of this network cannot be counted")
    ceilings = Ceilings(
        products,
        stepping.rate if stepping else None,
        apart=plan.device != CPU and plan.games_on == CPU,
    )
    return Meter(
        work,
        ceilings,
        pace=pace_of(plan, net, kept) if can_be_tried(plan, subject.algo) else None,
        doubt=lambda: kept.drop(names_of(subject)),
        beside=Beside(),
    )


def names_of(subject: Subject) -> list[str]:
    names = [names_of_ceilings(subject.place)[subject.precision]]
    if can_be_stepped(subject.plan):
        names.append(stepping_name(subject.plan))
    return names


def is_known(subject: Subject, kept: Kept) -> bool:
    plan = subject.plan
    if any(name not in kept.entries for name in names_of(subject)):
        return False
    tried = can_be_tried(plan, subject.algo)
    return not tried or pace_of(plan, subject.net(), kept) is not None


def measure_all(subject: Subject, kept: Kept) -> float:
    """Measure what is not known yet; return the seconds that it took."""
    started, plan = time.perf_counter(), subject.plan
    measure_machine(subject.place, kept)
    measure_stepping(plan, kept)
    if can_be_tried(plan, subject.algo):
        measure_pace(plan, subject.learner, subject.net(), kept)
    if plan.device != CPU:
        torch.cuda.empty_cache()
    return time.perf_counter() - started
