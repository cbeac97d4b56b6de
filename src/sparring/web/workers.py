"""Threads beside the event loop. One that is stuck is given up, and another takes its place."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sparring.errors import SparringError

T = TypeVar("T")
MAX_THREADS = (os.cpu_count() or 1) + 4
MAX_HUNG = 64
"""Threads that were given up and have not ended; they hold memory. Beyond that nothing begins."""


class HungThreadsError(SparringError):
    """Too many answers that hang."""


@dataclass(eq=False)
class ThreadJob:
    """Something to do, and who waits for it."""

    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Any] = field(init=False)
    state: str = "waiting"
    """Then at work; then over, or given up."""

    def __post_init__(self) -> None:
        self.answer = self.loop.create_future()

    def run(self) -> None:
        """Do it, and tell the loop."""
        try:
            made, wrong = self.work(), None
        except BaseException as caught:  # whoever waits has to hear of it
            made, wrong = None, caught
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self.loop.call_soon_threadsafe(self.tell, made, wrong)

    def tell(self, made: Any, wrong: BaseException | None) -> None:
        """Hand the answer over, if somebody still waits."""
        if self.answer.done():
            return
        if isinstance(wrong, StopIteration):  # a future cannot carry it
            wrong = RuntimeError(str(wrong))
        if wrong is None:
            self.answer.set_result(made)
        else:
            self.answer.set_exception(wrong)


class ThreadWorkers:
    """At most so many threads at work. They are daemons: nothing that hangs keeps us from ending.

    The executor of asyncio has neither: a thread that hangs is one less for good, and the process
    waits for it at its end.
    """

    def __init__(self, most: int = MAX_THREADS) -> None:
        self.most = most
        self.at_work = self.idle = self.stuck = 0
        self._jobs: deque[ThreadJob] = deque()
        self._changed = threading.Condition()

    async def do(self, work: Callable[[], T]) -> T:
        """Return what a function returns; whoever stops waiting gives its thread up."""
        job = ThreadJob(work, asyncio.get_running_loop())
        self._put(job)
        try:
            made: T = await job.answer
            return made
        finally:
            if not job.answer.done() or job.answer.cancelled():
                self._give_up(job)

    def _put(self, job: ThreadJob) -> None:
        with self._changed:
            if self.stuck >= MAX_HUNG:
                raise HungThreadsError(f"{self.stuck} answers hang; start this server again")
            self._jobs.append(job)
            self._hire()

    def _hire(self) -> None:
        """Let somebody take the next job: one who waits for it, or a new thread."""
        if self.idle >= len(self._jobs):
            self._changed.notify()
        elif self.at_work + self.idle < self.most:
            self.idle += 1
            threading.Thread(target=self._work, name="answers", daemon=True).start()

    def _give_up(self, job: ThreadJob) -> None:
        with self._changed:
            if job.state == "waiting":
                self._jobs.remove(job)
            elif job.state == "at work":
                self.at_work -= 1
                self.stuck += 1
                if self._jobs:
                    self._hire()
            job.state = "given up"

    def _work(self) -> None:
        """Do one job after the other."""
        while True:
            with self._changed:
                while not self._jobs:
                    self._changed.wait()
                job = self._jobs.popleft()
                job.state = "at work"
                self.idle -= 1
                self.at_work += 1
            job.run()
            with self._changed:
                if job.state == "given up":  # another thread has taken this one's place
                    self.stuck -= 1
                    return
                job.state = "over"
                self.at_work -= 1
                self.idle += 1
            del job  # a thread that waits for another day keeps nothing alive


WORKERS = ThreadWorkers()
"""Those of this process."""
