"""Trials in processes of their own: one each on CPUs, or populations on a GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict

from sparring.config import TrainConfig
from sparring.messages import Message
from sparring.processes import LOOK_S, Child, wait_any
from sparring.sweep.points import may_share
from sparring.sweep.record import read_trial
from sparring.sweep.trials import Job, Judge, Point, Trial, failed
from sparring.training.planning.settings import written


class Trainer(Child):
    """A process that trains, and what it is training."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.jobs: list[Job] = []
        """What it is training."""
        self.found: dict[int, Trial] = {}
        """What came of some of them."""
        self.refused = ""
        """Why none of them was begun."""
        self.curves: dict[int, list[Point]] = {}
        self.judge: Judge | None = None
        self.hopeless: dict[int, str] = {}
        super().__init__("sparring.sweep.worker", threads=threads)

    def order(self, jobs: Sequence[Job], judge: Judge, raised: str) -> None:
        self.jobs, self.judge, self.found, self.refused = list(jobs), judge, {}, ""
        self.curves = {job.trial.number: [] for job in jobs}
        self.hopeless = {}
        told = [
            {"trial": asdict(job.trial), "config": written(job.config), "final": job.final}
            for job in jobs
        ]
        order = {"jobs": told, "raised": raised, "threads": self.threads}
        self.send(Message("train", order))

    def judged(self, number: int, point: Point) -> None:
        """Take in an evaluation, and tell the process whether there is hope."""
        curve = self.curves[number]
        curve.append(point)
        assert self.judge
        why = self.judge(number, curve)
        if why != self.hopeless.get(number, ""):
            self.hopeless[number] = why
            self.send(Message("hopeless", {"number": number, "why": why}))


class Children:
    """Trains jobs in child processes; nothing is left of them when it is closed."""

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

        at_once: processes with a job each; with `populations`, members of the one that is trained.
        threads: of each process.
        """
        self.at_once, self.shared, self._raised = at_once, shared, raised
        self._threads, self._populations = threads, populations
        self._children: list[Trainer] = []
        self._waiting: deque[tuple[list[Job], Judge]] = deque()

    @property
    def _busy(self) -> list[Trainer]:
        return [child for child in self._children if child.jobs]

    @property
    def free(self) -> int:
        """How many jobs may begin: a population is begun when the one before has ended."""
        if self._populations:
            return 0 if self._busy or self._waiting else self.at_once
        return self.at_once - len(self._busy) - len(self._waiting)

    def begin(self, jobs: Sequence[Job], judge: Judge) -> None:
        """Begin jobs; of populations those that can be one, one after the other."""
        groups = grouped(jobs) if self._populations else [[job] for job in jobs]
        self._waiting += [(group, judge) for group in groups]
        self._start()

    def _start(self) -> None:
        most = 1 if self._populations else self.at_once
        while self._waiting and len(self._busy) < most:
            jobs, judge = self._waiting.popleft()
            idle = [child for child in self._children if not child.jobs]
            if not idle:
                idle = [Trainer(self._threads)]
                self._children += idle
            idle[0].order(jobs, judge, self._raised)

    def wait(self) -> list[Trial]:
        found: list[Trial] = []
        while not found and (self._busy or self._waiting):
            for child in wait_any(self._children, LOOK_S):
                found += self._hear(child)
            self._start()
        return found

    def _hear(self, child: Trainer) -> list[Trial]:
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
        jobs, child.jobs = child.jobs, []  # it is told once, however it ends
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


def grouped(jobs: Sequence[Job]) -> list[list[Job]]:
    """Put jobs together that can be one population."""
    groups: list[list[Job]] = []
    for job in jobs:
        for group in groups:
            if may_share(group[0].config, job.config):
                group.append(job)
                break
        else:
            groups.append([job])
    return groups


def populated(config: TrainConfig) -> bool:
    """Whether trials of such settings can be members of populations here."""
    from sparring.training.planning.plan import resolve

    return resolve([config], played=False).fused
