"""Supervision of a pool's workers: requests, waiting, and restarts of workers that fail."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparring.errors import ConfigError, EnvError, SparringError, SparringWarning
from sparring.games.seeds import derive_seed
from sparring.messages import Message
from sparring.pools.workers.parts import GamePart, Seeds, codes
from sparring.pools.workers.worker import Worker
from sparring.processes import SharedArrays

LOOK_S = 0.5
"""Seconds between two checks of the workers while nothing happens."""
FLUSH_S = 0.01
"""Seconds between two attempts to send more to a worker whose socket is full."""
PATIENCE_S = 2.0
"""Seconds that workers have to close their environments at the end."""
IN_A_ROW = 3
"""Consecutive starts of a worker without a step after which the run ends."""
MAX_LINES = 200
"""Different lines of the workers' standard error that are printed."""


@dataclass(frozen=True)
class Limits:
    """Time limits, and limits of failures."""

    step_s: float = 60.0
    """For one step, or reset, of one environment."""
    start_s: float = 120.0
    """For a worker to make all its environments."""
    restarts: int = 100
    in_a_row: int = 10
    """Consecutive restarts of one worker without an episode that ends."""


class WorkerSupervisor:
    """Worker processes that step parts of a pool's games, whatever these are."""

    def __init__(self, job: dict[str, Any], parts: list[GamePart], limits: Limits) -> None:
        """Start all workers.

        job: for every worker; "seed", "first_game" and "word" are used here, too.
        """
        # The current folder: environments of this process may change it later.
        self.job = {**job, "folder": str(Path.cwd())}
        self.parts, self.limits = parts, limits
        self.restarts = 0
        """Restarts of all workers together."""
        self.flags: dict[str, Any] = {}
        """Flags set while games run; a restarted worker gets them, too."""
        self.memory: SharedArrays | None = None
        self.description: dict[str, Any] = {}
        """Rules and agents of the environments."""
        self._shown: set[str] = set()
        self._printed: set[str] = set()
        self._done, done = os.pipe()
        os.set_blocking(self._done, False)
        self._done_theirs = done
        self._poll = select.poll()
        self._poll.register(self._done, select.POLLIN)
        self._worker_by_fd: dict[int, Worker] = {}
        count = parts[-1].worker + 1
        self.workers = [Worker(i, [p for p in parts if p.worker == i]) for i in range(count)]
        self.ended = False
        self._look_s = min(LOOK_S, limits.step_s / 2, limits.start_s / 2)
        self._next_look = 0.0
        try:
            for worker in self.workers:
                self._start(worker)
            self._wait_until(lambda: all(worker.answers for worker in self.workers))
            self.description = self._read_description(self.workers[0])
            for worker in self.workers[1:]:
                self._read_description(worker)
        except BaseException:
            self.end()
            raise

    # Requests

    def share(self, memory: SharedArrays) -> None:
        """Send the shared memory to all workers."""
        self.memory = memory
        for worker in self.workers:
            worker.share(memory.fd)

    def step(self, part: GamePart) -> None:
        """Request a step of a part, or new games if its games are lost."""
        part.awaited = True
        part.seeds = None if part.running else self._restart_seeds(part)
        self._request(part)

    def begin(self, part: GamePart, seeds: Seeds) -> None:
        """Request new games."""
        fresh = not part.running and seeds[0] is None
        part.awaited, part.seeds = True, self._restart_seeds(part) if fresh else seeds
        part.running = part.lost = part.restarted = False
        self._request(part)

    def wait(self, parts: list[GamePart]) -> None:
        """Wait until all these parts have answered."""
        self._wait_until(lambda: not any(part.awaited for part in parts))

    def broadcast(self, message: Message) -> str:
        """Send a message to all workers while no part is requested; return the first refusal."""
        self._wait_until(lambda: all(worker.ready for worker in self.workers))
        incarnations = [worker.incarnation for worker in self.workers]
        for worker in self.workers:
            worker.answers.clear()
            worker.since, worker.awaits_reply = time.monotonic(), True
            worker.send(message)

        def answered(worker: Worker) -> bool:  # a restarted worker reads flags from its job
            return bool(worker.answers) or worker.incarnation > incarnations[worker.index]

        self._wait_until(lambda: all(map(answered, self.workers)))
        for worker in self.workers:
            worker.awaits_reply = False
        replies = [worker.answers.pop(0) for worker in self.workers if worker.answers]
        return next((one.payload["refused"] for one in replies if one.payload["refused"]), "")

    def memory_mib(self) -> float:
        return sum(worker.memory_mib() for worker in self.workers)

    def end(self) -> None:
        if self.ended:
            return
        self.ended = True
        until = time.monotonic() + PATIENCE_S
        for worker in self.workers:
            worker.close_pipe()
        for worker in self.workers:
            if worker.has_process:
                self._print_output(worker)
            worker.end(max(until - time.monotonic(), 0.01) if worker.ready else 0.0)
        os.close(self._done)
        os.close(self._done_theirs)
        if self.memory is not None:
            self.memory.close()

    # Waiting

    def _wait_until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            self.poll()

    def poll(self, timeout_s: float = LOOK_S) -> None:
        """Wait a little for answers, messages and ends of workers, and handle them."""
        if self.ended:
            raise SparringError("the workers of this pool have ended; make another one")
        late = [one.process.channel for one in self.workers if one.process.channel.has_unsent]
        wait_s = FLUSH_S if late else self._look_s
        for channel in late:
            channel.flush()
        failed: set[int] = set()
        for fd, _ in self._poll.poll(min(timeout_s, wait_s) * 1000):
            if fd == self._done:
                self._answered()
            else:
                worker = self._worker_by_fd[fd]
                worker.receive()
                self._resume(worker)
                if worker.process.has_ended:
                    failed.add(worker.index)
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + self._look_s
            self._check_workers(now, failed)
        for index in sorted(failed):
            self._replace(self.workers[index])

    def _answered(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:  # read all: a leftover would count for the next incarnation
                for index in codes(os.read(self._done, 4096)):
                    part = self.parts[index]
                    part.awaited = part.sent = False
                    part.running, part.restarted, part.lost = True, part.lost, False
                    worker = self.workers[part.worker]
                    worker.has_stepped, worker.since = True, time.monotonic()

    def _check_workers(self, now: float, failed: set[int]) -> None:
        """Find workers that have ended or exceed a time limit."""
        for worker in self.workers:
            self._print_output(worker)
            if worker.process.process.poll() is not None:
                failed.add(worker.index)
                continue
            busy = worker.awaits_reply or any(part.sent for part in worker.parts)
            if worker.ready and self.memory is not None:
                beat = int(self.memory["beat"][worker.index, 0])
                if beat != worker.beat or not busy:
                    worker.beat, worker.since = beat, now
            limit = self.limits.step_s if worker.ready else self.limits.start_s
            if now - worker.since > limit and (busy or not worker.ready):
                what = "a step or reset" if worker.ready else "making its environments"
                setting = "env.step_timeout_s" if worker.ready else "env.start_timeout_s"
                worker.error = ConfigError(f"{what} took longer than {setting} {limit:g}")
                failed.add(worker.index)

    # Start and end of workers

    def _start(self, worker: Worker) -> None:
        job = {
            **self.job,
            "flags": self.flags,
            "worker": worker.index,
            "workers": len(self.workers),
            "first": worker.parts[0].first,
            "games": sum(part.games for part in worker.parts),
            "parts": [(part.index, part.first, part.games) for part in worker.parts],
        }
        worker.partial_line = b""
        worker.start(job, self._done_theirs)
        self._worker_by_fd[worker.process.channel.socket.fileno()] = worker
        self._poll.register(worker.process.channel.socket, select.POLLIN)

    def _read_description(self, worker: Worker) -> dict[str, Any]:
        """Read a worker's first message: rules and agents, which must be the same for all."""
        description = dict(worker.answers.pop(0).payload)
        if self.description and description != self.description:
            raise SparringError(f"{self.job['word']} makes different environments each time")
        return description

    def _resume(self, worker: Worker) -> None:
        """Continue with a restarted worker that has made its environments."""
        if self.memory is None or worker.ready or not worker.answers:
            return
        self._read_description(worker)
        worker.share(self.memory.fd)
        worker.since, worker.beat = time.monotonic(), int(self.memory["beat"][worker.index, 0])
        for part in worker.parts:
            if part.awaited and not part.sent:
                worker.send_part(part)

    def _request(self, part: GamePart) -> None:
        worker = self.workers[part.worker]
        if worker.ready:
            worker.send_part(part)

    def _restart_seeds(self, part: GamePart) -> Seeds:
        """Seeds of games that replace lost ones, by game and incarnation."""
        incarnation, seed = self.workers[part.worker].incarnation, self.job["seed"]
        first = self.job["first_game"] + part.first
        return [derive_seed(seed, first + game, incarnation) for game in range(part.games)]

    def _replace(self, worker: Worker) -> None:
        """End a worker and restart it, or raise if it failed too often."""
        fd = worker.process.channel.socket.fileno()
        del self._worker_by_fd[fd]
        self._poll.unregister(fd)
        self._print_output(worker)
        worker.end()
        self._answered()  # parts that it has finished count
        if self.memory is None:
            raise self._failed_start(worker)
        self.restarts += 1
        if often := self._too_often(worker):
            text = worker.describe_end()
            self.end()
            if not self.limits.restarts:
                raise EnvError(f"game {self.job['word']!r} failed: {text}")
            raise EnvError(f"workers of {self.job['word']} failed {often}: {text}")
        worker.incarnation += 1
        for part in worker.parts:
            part.lost = part.lost or part.running
            part.running = part.sent = False
            if part.awaited and (part.seeds is None or part.seeds[0] is None):
                part.seeds = self._restart_seeds(part)
        text, how = worker.describe_end(), worker.exit_text()
        self._start(worker)
        self._show(worker, how, text)

    def _too_often(self, worker: Worker) -> str:
        """Why a worker must not be restarted again; "" if it may."""
        assert self.memory is not None
        ended, limits = int(self.memory["ended"][worker.index, 0]), self.limits
        worker.starts_without_step = 0 if worker.has_stepped else worker.starts_without_step + 1
        worker.failures_in_a_row = 0 if ended > worker.ended else worker.failures_in_a_row
        worker.failures_in_a_row += not worker.was_killed  # which is not the environment's fault
        worker.ended = ended
        if worker.starts_without_step >= IN_A_ROW:
            return f"{IN_A_ROW} times in a row without a single step"
        if worker.failures_in_a_row > limits.in_a_row:
            return (
                f"{worker.failures_in_a_row} times in a row without an episode that ended, more "
                f"than env.max_restarts_in_a_row {limits.in_a_row}"
            )
        if self.restarts > limits.restarts:
            return f"{self.restarts} times, more than env.max_restarts {limits.restarts}"
        return ""

    def _failed_start(self, worker: Worker) -> Exception:
        if isinstance(worker.error, ConfigError):
            return worker.error
        return ConfigError(f"game {self.job['word']!r} cannot be made: {worker.describe_end()}")

    def _show(self, worker: Worker, how: str, text: str) -> None:
        """Warn of a failure, once for each kind."""
        if how in self._shown:
            return
        self._shown.add(how)
        warnings.warn(
            SparringWarning(
                f"worker {worker.index} of {self.job['word']} failed and is restarted with new "
                f"games; its open decisions are dropped ({text})"
            ),
            stacklevel=2,
        )

    def _print_output(self, worker: Worker) -> None:
        """Print lines of a worker's standard error, each different one once."""
        *lines, worker.partial_line = (worker.partial_line + worker.process.read_output()).split(
            b"\n"
        )
        for line in (one.decode(errors="replace") for one in lines):
            if line in self._printed or len(self._printed) > MAX_LINES:
                continue
            self._printed.add(line)
            enough = f"workers of {self.job['word']} printed {MAX_LINES} lines; no more are shown"
            print(line if len(self._printed) <= MAX_LINES else enough, file=sys.stderr)
