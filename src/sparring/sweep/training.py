"""Trains jobs of a sweep in this process: one run, or a population on a GPU."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from sparring.errors import SparringError, SparringWarning
from sparring.league.arena import ALONE
from sparring.learn.learner import DivergedError
from sparring.sweep.trials import (
    DONE,
    PRUNED,
    Evaluation,
    Trial,
    TrialJob,
    TrialRefusedError,
    failed,
    measured_against,
    objective_value,
)
from sparring.training.agent import Agent, measure
from sparring.training.callbacks import CallbackRun, Callbacks
from sparring.training.session import LOWERED
from sparring.training.train import train_all

DIVERGED = "diverged"
DIVERGED_WORDS = "diverged: a loss was not finite"
OnEvaluation = Callable[[int, Evaluation], None]
Hopeless = Callable[[int], str]


class TrialCallbacks:
    """Callbacks of a training: record evaluations and stop pruned trials."""

    def __init__(
        self, jobs: Sequence[TrialJob], raised: str, on_evaluation: OnEvaluation, hopeless: Hopeless
    ) -> None:
        """Identify jobs by the names of their runs.

        hopeless: called after every update; returns why to stop a job, "" to continue.
        """
        self.jobs = {job.config.name: job for job in jobs}
        self.raised, self.on_evaluation, self.hopeless = raised, on_evaluation, hopeless
        numbers = [job.trial.number for job in jobs]
        self.points: dict[int, dict[int, tuple[float, int]]] = {number: {} for number in numbers}
        """Seconds and decisions by update, of each job."""
        self.curves: dict[int, list[Evaluation]] = {number: [] for number in numbers}
        self.results: dict[int, dict[str, Any]] = {}
        """Results of the last evaluation."""
        self.stopped: dict[int, str] = {}
        """Why jobs were stopped."""
        self.diverged: set[int] = set()

    @property
    def callbacks(self) -> Callbacks:
        return Callbacks(on_update=self.update, on_evaluation=self.evaluation)

    def update(self, run: CallbackRun) -> None:
        """Record progress; stop the run, or the whole population once all are pruned."""
        number = self.jobs[run.member.plan.name].trial.number
        status = run.status
        self.points[number][status.update] = status.seconds, status.decisions
        if len(self.jobs) == 1 and run.member.has_event(LOWERED):
            self.diverged.add(number)  # it continues with other settings than the trial's
            run.stop(DIVERGED)
        if len(self.jobs) > 1 and status.progress >= 1:
            leave_last(run)
        reasons = {number: self.hopeless(number) for number in self.points}
        if all(reasons.values()) and not self.stopped:
            self.stopped = reasons
            run.stop("pruned")

    def evaluation(self, run: CallbackRun, results: dict[str, Any]) -> None:
        """Record the results of an evaluation."""
        number, status = self.jobs[run.member.plan.name].trial.number, run.status
        seconds, decisions = self.points[number].get(
            status.evaluated, (status.seconds, status.decisions)
        )
        self.results[number] = results
        point = (seconds, float(decisions), objective_value(self.raised, results)[0])
        self.curves[number].append(point)
        self.on_evaluation(number, point)

    def last(self, number: int) -> tuple[float, int]:
        return max(self.points[number].items(), default=(0, (0.0, 0)))[1]

    def ended(self, job: TrialJob, agent: Agent, took: float, results: dict[str, Any]) -> Trial:
        """Return the result of a job. results: of final games, if there were any."""
        number = job.trial.number
        found = results or self.results.get(number, {})
        trial = replace(
            job.trial,
            run=str(agent.run),
            seconds=took,
            decisions=self.last(number)[1],
            curve=tuple(self.curves[number]),
        )
        if agent.ended == DIVERGED or number in self.diverged:
            return failed(trial, DIVERGED_WORDS)
        if not found:
            return failed(trial, "no evaluation came to an end")
        value, low, high = objective_value(self.raised, found)
        why, noted = self.stopped.get(number, ""), self.hopeless(number)
        if noted and not why:  # it had finished already
            trial = replace(trial, extra={**trial.extra, "hopeless": noted})
        state = PRUNED if why else DONE
        return replace(trial, state=state, value=value, low=low, high=high, why=why)


def leave_last(run: CallbackRun) -> None:
    """Drop pending evaluations but the last: members are evaluated one after the other."""
    member = run.member
    member.waiting = {n: at for n, at in member.waiting.items() if n == member.playing}


def train_jobs(
    jobs: Sequence[TrialJob],
    raised: str,
    on_evaluation: OnEvaluation,
    hopeless: Hopeless,
    *,
    threads: int = 1,
) -> list[Trial]:
    """Train jobs, several as one population; a failed training returns failed trials.

    threads: of the final games. Raises TrialRefusedError if no training has started.
    """
    watch, started = TrialCallbacks(jobs, raised, on_evaluation, hopeless), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SparringWarning)
        try:
            configs = [job.config for job in jobs]
            agents = train_all(configs, quiet=True, callbacks=watch.callbacks)
            if any(agent.ended.startswith("SIG") for agent in agents):
                raise KeyboardInterrupt
            took = time.perf_counter() - started
            torch.set_num_threads(threads)
            return [
                watch.ended(job, agent, took, measured(job, agent, threads) if job.final else {})
                for job, agent in zip(jobs, agents, strict=True)
            ]
        except Exception as error:
            if any(watch.points.values()):
                return [failed(job.trial, reason(error)) for job in jobs]
            for job in jobs:  # they may be tried again in another population
                shutil.rmtree(Path(job.config.runs) / job.config.name, ignore_errors=True)
            raise TrialRefusedError(reason(error)) from None


def reason(error: Exception) -> str:
    """Return the error in one line."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return "memory ran out"
    if isinstance(error, DivergedError):
        return f"diverged: {error}"
    text = " ".join(str(error).split())
    return text if isinstance(error, SparringError) else f"{type(error).__name__}: {text}"


def measured(job: TrialJob, agent: Agent, threads: int) -> dict[str, Any]:
    """Play the final games of a run against the opponents of its evaluations."""
    if agent.ended == DIVERGED:
        return {}
    config, met = job.config, measured_against(job.config, agent.policy.rules)
    against = () if met == (ALONE,) else met
    results = measure(agent, replace(config.eval, against=against), threads=threads or 1)
    return {name: found.summary() for name, found in results.items()}
