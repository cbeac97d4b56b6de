"""The workers of a pool: asked, waited for, watched, and started again when they fail."""

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
from sparring.pools.workers.parts import Part, Seeds, codes
from sparring.pools.workers.worker import Worker
from sparring.processes import SharedArrays

LOOK_S = 0.5
"""How often workers are looked after while nothing happens."""
FLUSH_S = 0.01
"""How often it is tried to say more to one that has not read what it was told."""
PATIENCE_S = 2.0
"""Seconds that workers have to close their environments at the end."""
IN_A_ROW = 3
"""Starts of one worker without a single answer after which the next would not help either."""
MAX_LINES = 200
"""Different lines of workers' standard errors that are passed on."""


@dataclass(frozen=True)
class Limits:
    """How long things may take, and how often they may fail."""

    step_s: float = 60.0
    """For one step, or reset, of one env."""
    start_s: float = 120.0
    """For all envs of a worker to be made."""
    restarts: int = 100
    in_a_row: int = 10
    """Of one worker, without an episode that ends in between."""


class Crew:
    """Processes that step parts of a pool's games. It knows nothing of what they play."""

    def __init__(self, job: dict[str, Any], parts: list[Part], limits: Limits) -> None:
        """Start all of them.

        job: what every worker is told; "seed", "first_game" and "word" are read here too.
        """
        # Where the program is now: later on its own environments may have left this folder.
        self.job = {**job, "folder": str(Path.cwd())}
        self.parts, self.limits = parts, limits
        self.restarts = 0
        """Of all workers together."""
        self.flags: dict[str, Any] = {}
        """What games were told while they ran; a worker that starts again is told too."""
        self.memory: SharedArrays | None = None
        self.hello: dict[str, Any] = {}
        self._shown: set[str] = set()
        self._heard: set[str] = set()
        self._done, done = os.pipe()
        os.set_blocking(self._done, False)
        self._done_theirs = done
        self._poll = select.poll()
        self._poll.register(self._done, select.POLLIN)
        self._of_file: dict[int, Worker] = {}
        count = parts[-1].worker + 1
        self.workers = [Worker(i, [p for p in parts if p.worker == i]) for i in range(count)]
        self.ended = False
        self._look_s = min(LOOK_S, limits.step_s / 2, limits.start_s / 2)
        self._next_look = 0.0
        try:
            for worker in self.workers:
                self._start(worker)
            self._until(lambda: all(worker.answers for worker in self.workers))
            self.hello = self._greeted(self.workers[0])
            for worker in self.workers[1:]:
                self._greeted(worker)
        except BaseException:
            self.end()
            raise

    # What is asked of workers

    def share(self, memory: SharedArrays) -> None:
        """Hand over the memory that they write into."""
        self.memory = memory
        for worker in self.workers:
            worker.share(memory.fd)

    def step(self, part: Part) -> None:
        """Ask for a step of a part; if its games are lost, for new ones."""
        part.asked = True
        part.seeds = None if part.running else self._life_seeds(part)
        self._tell(part)

    def begin(self, part: Part, seeds: Seeds) -> None:
        """Ask for new games, whatever became of those before."""
        fresh = not part.running and seeds[0] is None
        part.asked, part.seeds = True, self._life_seeds(part) if fresh else seeds
        part.running = part.lost = part.anew = False
        self._tell(part)

    def wait(self, parts: list[Part]) -> None:
        """Wait until none of these parts owes an answer."""
        self._until(lambda: not any(part.asked for part in parts))

    def tell_all(self, message: Message) -> str:
        """Say something to all workers, when nothing else is asked; return what one refuses."""
        self._until(lambda: all(worker.up for worker in self.workers))
        lives = [worker.life for worker in self.workers]
        for worker in self.workers:
            worker.answers.clear()
            worker.since, worker.owes = time.monotonic(), True
            worker.say(message)

        def answered(worker: Worker) -> bool:  # one that starts again is told by its job
            return bool(worker.answers) or worker.life > lives[worker.index]

        self._until(lambda: all(map(answered, self.workers)))
        for worker in self.workers:
            worker.owes = False
        told = [worker.answers.pop(0) for worker in self.workers if worker.answers]
        return next((answer.payload["refused"] for answer in told if answer.payload["refused"]), "")

    def memory_mib(self) -> float:
        return sum(worker.memory_mib() for worker in self.workers)

    def end(self) -> None:
        if self.ended:
            return
        self.ended = True
        until = time.monotonic() + PATIENCE_S
        for worker in self.workers:
            worker.let_go()
        for worker in self.workers:
            if worker.runs:
                self._pass_on(worker)
            worker.end(max(until - time.monotonic(), 0.01) if worker.up else 0.0)
        os.close(self._done)
        os.close(self._done_theirs)
        if self.memory is not None:
            self.memory.close()

    # Waiting

    def _until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            self.look()

    def look(self, timeout_s: float = LOOK_S) -> None:
        """Wait a little for anything to happen, and deal with it."""
        if self.ended:
            raise SparringError("the workers of this pool have ended; make another one")
        late = [one.process.channel for one in self.workers if one.process.channel.has_unsent]
        wait_s = FLUSH_S if late else self._look_s
        for channel in late:
            channel.flush()
        troubled: set[int] = set()
        for fd, _ in self._poll.poll(min(timeout_s, wait_s) * 1000):
            if fd == self._done:
                self._answered()
            else:
                worker = self._of_file[fd]
                worker.hear()
                self._greet_again(worker)
                if worker.process.has_ended:
                    troubled.add(worker.index)
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + self._look_s
            self._look_after(now, troubled)
        for index in sorted(troubled):
            self._lost(self.workers[index])

    def _answered(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:  # all of them: one that stays would count for a later life
                for index in codes(os.read(self._done, 4096)):
                    part = self.parts[index]
                    part.asked = part.told = False
                    part.running, part.anew, part.lost = True, part.lost, False
                    worker = self.workers[part.worker]
                    worker.steady, worker.since = True, time.monotonic()

    def _look_after(self, now: float, troubled: set[int]) -> None:
        """Find workers that are gone without a word, or do nothing."""
        for worker in self.workers:
            self._pass_on(worker)
            if worker.process.process.poll() is not None:
                troubled.add(worker.index)
                continue
            busy = worker.owes or any(part.told for part in worker.parts)
            if worker.up and self.memory is not None:
                beat = int(self.memory["beat"][worker.index, 0])
                if beat != worker.beat or not busy:
                    worker.beat, worker.since = beat, now
            limit = self.limits.step_s if worker.up else self.limits.start_s
            if now - worker.since > limit and (busy or not worker.up):
                what = "a step or reset" if worker.up else "making its environments"
                setting = "env.step_timeout_s" if worker.up else "env.start_timeout_s"
                worker.said = ConfigError(f"{what} took longer than {setting} {limit:g}")
                troubled.add(worker.index)

    # Beginnings and ends of workers

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
        worker.rest = b""
        worker.start(job, self._done_theirs)
        self._of_file[worker.process.channel.socket.fileno()] = worker
        self._poll.register(worker.process.channel.socket, select.POLLIN)

    def _greeted(self, worker: Worker) -> dict[str, Any]:
        """Take a worker's first word: what its environments are. All have to be alike."""
        hello = dict(worker.answers.pop(0).payload)
        if self.hello and hello != self.hello:
            raise SparringError(f"{self.job['word']} makes other environments every time")
        return hello

    def _greet_again(self, worker: Worker) -> None:
        """Go on with a worker that was started again and has made its environments."""
        if self.memory is None or worker.up or not worker.answers:
            return
        self._greeted(worker)
        worker.share(self.memory.fd)
        worker.since, worker.beat = time.monotonic(), int(self.memory["beat"][worker.index, 0])
        for part in worker.parts:
            if part.asked and not part.told:
                worker.tell(part)

    def _tell(self, part: Part) -> None:
        worker = self.workers[part.worker]
        if worker.up:
            worker.tell(part)

    def _life_seeds(self, part: Part) -> Seeds:
        """Seeds of games that begin because others were lost: by game, and how often it was."""
        life, seed = self.workers[part.worker].life, self.job["seed"]
        first = self.job["first_game"] + part.first
        return [derive_seed(seed, first + game, life) for game in range(part.games)]

    def _lost(self, worker: Worker) -> None:
        """End what is left of a worker and start it again, or give up."""
        fd = worker.process.channel.socket.fileno()
        del self._of_file[fd]
        self._poll.unregister(fd)
        self._pass_on(worker)
        worker.end()
        self._answered()  # what it finished is finished
        if self.memory is None:
            raise self._failed_start(worker)
        self.restarts += 1
        if often := self._too_often(worker):
            text = worker.farewell()
            self.end()
            if not self.limits.restarts:
                raise EnvError(f"game {self.job['word']!r} failed: {text}")
            raise EnvError(f"workers of {self.job['word']} failed {often}: {text}")
        worker.life += 1
        for part in worker.parts:
            part.lost = part.lost or part.running
            part.running = part.told = False
            if part.asked and (part.seeds is None or part.seeds[0] is None):
                part.seeds = self._life_seeds(part)
        text, how = worker.farewell(), worker.how()
        self._start(worker)
        self._show(worker, how, text)

    def _too_often(self, worker: Worker) -> str:
        """How often a worker, or all of them, failed, if it was once too often; "" if not."""
        assert self.memory is not None
        ended, limits = int(self.memory["ended"][worker.index, 0]), self.limits
        worker.fruitless = 0 if worker.steady else worker.fruitless + 1
        worker.in_a_row = 0 if ended > worker.ended else worker.in_a_row
        worker.in_a_row += not worker.was_killed  # which is no fault of the environment's
        worker.ended = ended
        if worker.fruitless >= IN_A_ROW:
            return f"{IN_A_ROW} times in a row without a single step"
        if worker.in_a_row > limits.in_a_row:
            return (
                f"{worker.in_a_row} times in a row without an episode that ended, more than "
                f"env.max_restarts_in_a_row {limits.in_a_row}"
            )
        if self.restarts > limits.restarts:
            return f"{self.restarts} times, more than env.max_restarts {limits.restarts}"
        return ""

    def _failed_start(self, worker: Worker) -> Exception:
        """What to say when environments cannot even be made."""
        if isinstance(worker.said, ConfigError):
            return worker.said
        return ConfigError(f"game {self.job['word']!r} cannot be made: {worker.farewell()}")

    def _show(self, worker: Worker, how: str, text: str) -> None:
        """Tell a fault, the same one once."""
        if how in self._shown:
            return
        self._shown.add(how)
        warnings.warn(
            SparringWarning(
                f"worker {worker.index} of {self.job['word']} failed and starts again, its games "
                f"too; its open decisions are dropped ({text})"
            ),
            stacklevel=2,
        )

    def _pass_on(self, worker: Worker) -> None:
        """Show what a worker writes to its standard error; what several say alike, once."""
        *lines, worker.rest = (worker.rest + worker.process.read_output()).split(b"\n")
        for line in (one.decode(errors="replace") for one in lines):
            if line in self._heard or len(self._heard) > MAX_LINES:
                continue
            self._heard.add(line)
            enough = f"workers of {self.job['word']} have said {MAX_LINES} lines; no more is shown"
            print(line if len(self._heard) <= MAX_LINES else enough, file=sys.stderr)
