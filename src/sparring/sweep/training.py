"""Trainings of a sweep in this process: one run, or a population on a GPU."""

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
    Job,
    Point,
    RefusedError,
    Trial,
    failed,
    measured_against,
    value_of,
)
from sparring.training.agent import Agent, measure
from sparring.training.callbacks import CallbackRun, Callbacks
from sparring.training.session import LOWERED
from sparring.training.train import train_all

DIVERGED = "diverged"
DIVERGED_WORDS = "diverged: a loss was not finite"
Told = Callable[[int, Point], None]
Hopeless = Callable[[int], str]


class Watch:
    """Looks on while jobs are trained: evaluations are told, hopeless ones are ended."""

    def __init__(self, jobs: Sequence[Job], raised: str, told: Told, hopeless: Hopeless) -> None:
        """Jobs are known by the names of their runs.

        hopeless: asked after every update why a job is to end, "" if it is not.
        """
        self.jobs = {job.config.name: job for job in jobs}
        self.raised, self.told, self.hopeless = raised, told, hopeless
        numbers = [job.trial.number for job in jobs]
        self.points: dict[int, dict[int, tuple[float, int]]] = {number: {} for number in numbers}
        """Seconds and decisions by update, of each job."""
        self.curves: dict[int, list[Point]] = {number: [] for number in numbers}
        self.results: dict[int, dict[str, Any]] = {}
        """Of the last evaluation."""
        self.stopped: dict[int, str] = {}
        """Why jobs were ended."""
        self.diverged: set[int] = set()

    @property
    def callbacks(self) -> Callbacks:
        return Callbacks(on_update=self.update, on_evaluation=self.evaluation)

    def update(self, run: CallbackRun) -> None:
        """Note how far a run is; end it, or the whole population, once all are hopeless."""
        number = self.jobs[run.member.plan.name].trial.number
        status = run.status
        self.points[number][status.update] = status.seconds, status.decisions
        if len(self.jobs) == 1 and run.member.noted(LOWERED):
            self.diverged.add(number)  # it would go on under other settings than the trial's
            run.stop(DIVERGED)
        if len(self.jobs) > 1 and status.progress >= 1:
            leave_last(run)
        reasons = {number: self.hopeless(number) for number in self.points}
        if all(reasons.values()) and not self.stopped:
            self.stopped = reasons
            run.stop("pruned")

    def evaluation(self, run: CallbackRun, results: dict[str, Any]) -> None:
        """Take in what an evaluation found."""
        number, status = self.jobs[run.member.plan.name].trial.number, run.status
        seconds, decisions = self.points[number].get(
            status.evaluated, (status.seconds, status.decisions)
        )
        self.results[number] = results
        point = (seconds, float(decisions), value_of(self.raised, results)[0])
        self.curves[number].append(point)
        self.told(number, point)

    def last(self, number: int) -> tuple[float, int]:
        return max(self.points[number].items(), default=(0, (0.0, 0)))[1]

    def ended(self, job: Job, agent: Agent, took: float, results: dict[str, Any]) -> Trial:
        """What came of a job. results: measured at its end, where that was wanted."""
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
        value, low, high = value_of(self.raised, found)
        why, noted = self.stopped.get(number, ""), self.hopeless(number)
        if noted and not why:  # it went to the end all the same
            trial = replace(trial, extra={**trial.extra, "hopeless": noted})
        state = PRUNED if why else DONE
        return replace(trial, state=state, value=value, low=low, high=high, why=why)


def leave_last(run: CallbackRun) -> None:
    """Give up evaluations of before the end: members are measured in turn, and the last counts."""
    member = run.member
    member.waiting = {n: at for n, at in member.waiting.items() if n == member.playing}


def train_jobs(
    jobs: Sequence[Job], raised: str, told: Told, hopeless: Hopeless, *, threads: int = 1
) -> list[Trial]:
    """Train jobs, several as one population; what goes wrong once they have begun is told.

    threads: for the games that are played at the end. Raises RefusedError if none has begun.
    """
    watch, started = Watch(jobs, raised, told, hopeless), time.perf_counter()
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
        except Exception as wrong:
            if any(watch.points.values()):
                return [failed(job.trial, reason(wrong)) for job in jobs]
            for job in jobs:  # they may be tried once more, in other company
                shutil.rmtree(Path(job.config.runs) / job.config.name, ignore_errors=True)
            raise RefusedError(reason(wrong)) from None


def reason(wrong: Exception) -> str:
    """Say what went wrong, in one line."""
    if isinstance(wrong, MemoryError | torch.OutOfMemoryError):
        return "memory ran out"
    if isinstance(wrong, DivergedError):
        return f"diverged: {wrong}"
    text = " ".join(str(wrong).split())
    return text if isinstance(wrong, SparringError) else f"{type(wrong).__name__}: {text}"


def measured(job: Job, agent: Agent, threads: int) -> dict[str, Any]:
    """Play the final games of a run; against those whom its evaluations met."""
    if agent.ended == DIVERGED:
        return {}
    config, met = job.config, measured_against(job.config, agent.policy.rules)
    against = () if met == (ALONE,) else met
    results = measure(agent, replace(config.eval, against=against), threads=threads or 1)
    return {name: found.summary() for name, found in results.items()}
