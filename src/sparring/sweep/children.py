"""Trials in processes of their own: one each on CPUs, or populations on a GPU."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO, Any

from sparring.config import TrainConfig
from sparring.processes import end_group, last_words, start_python
from sparring.sweep.points import may_share
from sparring.sweep.trials import Ended, Job, Judge, Point, failed
from sparring.training.planning.settings import written


class Child:
    """A process that trains, and what it is training."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.jobs: list[Job] = []
        """What it is training."""
        self.found: list[Ended] = []
        """What came of some of them."""
        self.curves: dict[int, list[Point]] = {}
        self.judge: Judge | None = None
        self.hopeless: dict[int, str] = {}
        self.stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._unread = b""
        self.process = start_python(
            "sparring.sweep.worker",
            [str(os.getpid())],
            threads=threads,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            bufsize=0,
        )
        assert self.process.stdout
        os.set_blocking(self.process.stdout.fileno(), False)

    def order(self, jobs: Sequence[Job], judge: Judge, raised: str) -> None:
        """Have jobs trained."""
        self.jobs, self.judge, self.found = list(jobs), judge, []
        self.curves = {job.number: [] for job in jobs}
        self.hopeless = {}
        told = [
            {"number": job.number, "config": written(job.config), "final": job.final}
            for job in jobs
        ]
        self._send({"jobs": told, "raised": raised, "threads": self.threads})

    def judged(self, number: int, point: Point) -> None:
        """Take in an evaluation, and tell the process whether there is hope."""
        curve = self.curves[number]
        curve.append(point)
        assert self.judge
        why = self.judge(number, curve)
        if why != self.hopeless.get(number, ""):
            self.hopeless[number] = why
            self._send({"hopeless": {number: why}})

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin
        line = json.dumps(message, allow_nan=False).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # its end is noticed when it is read
            while line:
                line = line[self.process.stdin.write(line) :]

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """What it has told since the last time, and whether that was all it ever will."""
        assert self.process.stdout
        over = False
        with contextlib.suppress(BlockingIOError):
            while True:
                more = os.read(self.process.stdout.fileno(), 1 << 16)
                if not more:
                    over = True
                    break
                self._unread += more
        *lines, self._unread = self._unread.split(b"\n")
        return [json.loads(line) for line in lines], over

    def close(self) -> None:
        """End it, and what it has started."""
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        end_group(self.process)
        self.process.stdout.close()
        self.stderr.close()


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
        self._children: list[Child] = []
        self._waiting: deque[tuple[list[Job], Judge]] = deque()
        self._selector = selectors.DefaultSelector()

    @property
    def _busy(self) -> list[Child]:
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
            child = idle[0] if idle else self._new_child()
            child.order(jobs, judge, self._raised)

    def _new_child(self) -> Child:
        child = Child(self._threads)
        self._children.append(child)
        assert child.process.stdout
        self._selector.register(child.process.stdout, selectors.EVENT_READ, child)
        return child

    def wait(self) -> list[Ended]:
        """Wait until something has ended."""
        found: list[Ended] = []
        while not found and (self._busy or self._waiting):
            for key, _ in self._selector.select():
                found += self._hear(key.data)
            self._start()
        return found

    def _hear(self, child: Child) -> list[Ended]:
        messages, over = child.read()
        idle = False
        for message in messages:
            if "point" in message:
                child.judged(message["number"], tuple(message["point"]))
            elif "ended" in message:
                child.found.append(read_ended(message["ended"]))
            else:
                idle = True
        if not idle and not over:
            return []
        there = {ended.number for ended in child.found}
        lost = [job for job in child.jobs if job.number not in there]
        why = last_words(child.process, child.stderr) if lost else ""
        found = child.found + [failed(job, why) for job in lost]
        jobs, child.jobs, child.found = child.jobs, [], []  # it is told once, however it ends
        if over or self._populations:  # a device is given back whole by a process that ends
            self._let_go(child)
        return self._split(jobs, found, child.judge) if child.judge else found

    def _let_go(self, child: Child) -> None:
        self._children.remove(child)
        assert child.process.stdout
        self._selector.unregister(child.process.stdout)
        child.close()

    def _split(self, jobs: Sequence[Job], found: list[Ended], judge: Judge) -> list[Ended]:
        """Try a population that was refused, as when it does not fit, in two halves."""
        together = len(jobs) > 1 and len(found) == len(jobs)
        if not together or not all(ended.refused for ended in found):
            return found
        half = len(jobs) // 2
        self._waiting.extendleft([(list(jobs[half:]), judge), (list(jobs[:half]), judge)])
        return []

    def close(self) -> None:
        """End everything that is under way."""
        self._waiting.clear()
        while self._children:
            self._children.pop().close()
        self._selector.close()


def read_ended(table: Mapping[str, Any]) -> Ended:
    """What came of a job, from its message."""
    return Ended(**{**table, "curve": tuple(tuple(point) for point in table["curve"])})


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
