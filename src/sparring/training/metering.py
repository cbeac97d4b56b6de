"""When a run measures its machine: at the first training that somebody watches and that lasts."""

from __future__ import annotations

import sys

from sparring.learn.learner import Learner
from sparring.learn.plan import Plan
from sparring.training.meter.meter import Meter, Subject, meter_of
from sparring.training.planning.training import RunPlan

LEAST_MINUTES = 1.0
"""Runs of less are over before two seconds of measuring have paid."""


def meter_for(run: RunPlan, plan: Plan, learner: Learner, *, quiet: bool) -> Meter:
    """Return the meter of a run. What is not kept is measured only where somebody watches."""
    kind, amount = run.budget
    watched = not quiet and kind == "minutes" and amount >= LEAST_MINUTES
    return meter_of(subject_of(run, plan, learner), measure=watched, say=say)


def subject_of(run: RunPlan, plan: Plan, learner: Learner) -> Subject:
    """What is metered of a run."""
    return Subject(plan, run.algo, learner, processes=run.processes)


def say(text: str) -> None:
    """Tell whoever watches."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:  # nobody is there any more
        return
