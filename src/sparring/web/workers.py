"""Threads for blocking work of the event loop; a thread that hangs is replaced by another."""

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
"""Abandoned threads that still run, which hold memory; with more, new work is rejected."""


class HungThreadsError(SparringError):
    """Too many threads hang."""


@dataclass(eq=False)
class ThreadJob:
    """A function to run, and the future of its result."""

    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any] = field(init=False)
    state: str = "waiting"
    """Then running; then done or abandoned."""

    def __post_init__(self) -> None:
        self.future = self.loop.create_future()

    def run(self) -> None:
        try:
            result, wrong = self.work(), None
        except BaseException as caught:  # the waiting task raises it
            result, wrong = None, caught
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self.loop.call_soon_threadsafe(self.set_result, result, wrong)

    def set_result(self, result: Any, wrong: BaseException | None) -> None:
        if self.future.done():
            return
        if isinstance(wrong, StopIteration):  # a future cannot raise it
            wrong = RuntimeError(str(wrong))
        if wrong is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(wrong)


class ThreadWorkers:
    """A pool of at most `max_threads` daemon threads.

    asyncio's executor is no substitute: a thread that hangs is lost to it, and the process waits
    for the thread at exit.
    """

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self.max_threads = max_threads
        self.running = self.idle = self.hung = 0
        self._jobs: deque[ThreadJob] = deque()
        self._changed = threading.Condition()

    async def do(self, work: Callable[[], T]) -> T:
        """Return the result of a function; a task that is cancelled abandons the thread."""
        job = ThreadJob(work, asyncio.get_running_loop())
        self._put(job)
        try:
            result: T = await job.future
            return result
        finally:
            if not job.future.done() or job.future.cancelled():
                self._abandon(job)

    def _put(self, job: ThreadJob) -> None:
        with self._changed:
            if self.hung >= MAX_HUNG:
                raise HungThreadsError(f"{self.hung} requests hang; restart this server")
            self._jobs.append(job)
            self._wake()

    def _wake(self) -> None:
        """Notify an idle thread of the next job, or start a new thread."""
        if self.idle >= len(self._jobs):
            self._changed.notify()
        elif self.running + self.idle < self.max_threads:
            self.idle += 1
            threading.Thread(target=self._work, name="web worker", daemon=True).start()

    def _abandon(self, job: ThreadJob) -> None:
        with self._changed:
            if job.state == "waiting":
                self._jobs.remove(job)
            elif job.state == "running":
                self.running -= 1
                self.hung += 1
                if self._jobs:
                    self._wake()
            job.state = "abandoned"

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._jobs:
                    self._changed.wait()
                job = self._jobs.popleft()
                job.state = "running"
                self.idle -= 1
                self.running += 1
            job.run()
            with self._changed:
                if job.state == "abandoned":  # another thread has replaced this one
                    self.hung -= 1
                    return
                job.state = "done"
                self.running -= 1
                self.idle += 1
            del job  # so that an idle thread keeps nothing alive


WORKERS = ThreadWorkers()
"""Threads of this process."""
