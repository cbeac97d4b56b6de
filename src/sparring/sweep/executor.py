"""Runs trials in child processes: one each on CPUs, or populations on a GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict

from sparring.config import TrainConfig
from sparring.messages import Message
from sparring.processes import LOOK_S, Child, wait_any
from sparring.sweep.settings import may_share
from sparring.sweep.storage import read_trial
from sparring.sweep.trials import Evaluation, Judge, Trial, TrialJob, failed
from sparring.training.planning.settings import written


class TrainingProcess(Child):
    """A child process that trains jobs."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.jobs: list[TrialJob] = []
        """Jobs in training."""
        self.found: dict[int, Trial] = {}
        """Finished trials by number."""
        self.refused = ""
        """Why the jobs could not be started."""
        self.curves: dict[int, list[Evaluation]] = {}
        self.judge: Judge | None = None
        self.hopeless: dict[int, str] = {}
        super().__init__("sparring.sweep.worker", threads=threads)

    def order(self, jobs: Sequence[TrialJob], judge: Judge, raised: str) -> None:
        self.jobs, self.judge, self.found, self.refused = list(jobs), judge, {}, ""
        self.curves = {job.trial.number: [] for job in jobs}
        self.hopeless = {}
        messages = [
            {"trial": asdict(job.trial), "config": written(job.config), "final": job.final}
            for job in jobs
        ]
        order = {"jobs": messages, "raised": raised, "threads": self.threads}
        self.send(Message("train", order))

    def judged(self, number: int, point: Evaluation) -> None:
        """Record an evaluation, and send the process whether the trial is pruned."""
        curve = self.curves[number]
        curve.append(point)
        assert self.judge
        why = self.judge(number, curve)
        if why != self.hopeless.get(number, ""):
            self.hopeless[number] = why
            self.send(Message("hopeless", {"number": number, "why": why}))


class ProcessExecutor:
    """Trains jobs in child processes, which `close` ends."""

    def __init__(
        self,
        raised: str,
        *,
        at_once: int,
        threads: int,
        populations: bool = False,
        shared: Sequence[str] = (),
    ) -> None:
        """Start nothing yet.

        at_once: processes with a job each; with `populations`, members of a population.
        threads: of each process.
        """
        self.at_once, self.shared, self._raised = at_once, shared, raised
        self._threads, self._populations = threads, populations
        self._children: list[TrainingProcess] = []
        self._waiting: deque[tuple[list[TrialJob], Judge]] = deque()

    @property
    def _busy(self) -> list[TrainingProcess]:
        return [child for child in self._children if child.jobs]

    @property
    def free(self) -> int:
        """Jobs that may start now; a population starts when the one before has ended."""
        if self._populations:
            return 0 if self._busy or self._waiting else self.at_once
        return self.at_once - len(self._busy) - len(self._waiting)

    def begin(self, jobs: Sequence[TrialJob], judge: Judge) -> None:
        """Start jobs; those that can share a population are grouped, one population at a time."""
        groups = grouped(jobs) if self._populations else [[job] for job in jobs]
        self._waiting += [(group, judge) for group in groups]
        self._start()

    def _start(self) -> None:
        most = 1 if self._populations else self.at_once
        while self._waiting and len(self._busy) < most:
            jobs, judge = self._waiting.popleft()
            idle = [child for child in self._children if not child.jobs]
            if not idle:
                idle = [TrainingProcess(self._threads)]
                self._children += idle
            idle[0].order(jobs, judge, self._raised)

    def wait(self) -> list[Trial]:
        found: list[Trial] = []
        while not found and (self._busy or self._waiting):
            for child in wait_any(self._children, LOOK_S):
                found += self._hear(child)
            self._start()
        return found

    def _hear(self, child: TrainingProcess) -> list[Trial]:
        idle = False
        for message in child.receive():
            if message.name == "point":
                child.judged(message.payload["number"], tuple(message.payload["point"]))
            elif message.name == "ended":
                trial = read_trial(message.payload)
                child.found[trial.number] = trial
            elif message.name == "refused":
                child.refused = message.payload["why"]
            else:
                idle = True
        if not idle and not child.has_ended:
            return []
        jobs, child.jobs = child.jobs, []  # reported once, however it ends
        why = child.refused
        if child.has_ended and not why:
            why = child.exit_reason()
        if child.has_ended or self._populations:  # a device is given back whole by one that ends
            self._children.remove(child)
            child.end()
        if child.refused and child.judge and len(jobs) > 1:  # a population that does not fit
            half = len(jobs) // 2
            parts = [(jobs[half:], child.judge), (jobs[:half], child.judge)]
            self._waiting.extendleft(parts)
            return []
        return [child.found.get(job.trial.number) or failed(job.trial, why) for job in jobs]

    def close(self) -> None:
        self._waiting.clear()
        while self._children:
            self._children.pop().end()


def grouped(jobs: Sequence[TrialJob]) -> list[list[TrialJob]]:
    """Group jobs that can be members of one population."""
    groups: list[list[TrialJob]] = []
    for job in jobs:
        for group in groups:
            if may_share(group[0].config, job.config):
                group.append(job)
                break
        else:
            groups.append([job])
    return groups


def populated(config: TrainConfig) -> bool:
    """Whether trials of this configuration can be members of a population."""
    from sparring.training.planning.plan import resolve

    return resolve([config], played=False).fused
