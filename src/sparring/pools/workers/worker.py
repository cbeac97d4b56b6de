"""The pool's side of one worker process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from sparring.errors import SparringError
from sparring.messages import ERROR, Message, to_exception
from sparring.pools.workers.parts import CONTROL, Part, code
from sparring.processes import Child

MODULE = "sparring.pools.workers.process"
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


class Worker:
    """A process, the files between it and the pool, and when it was last heard of."""

    def __init__(self, index: int, parts: list[Part]) -> None:
        self.index, self.parts = index, parts
        self.life = 0
        """How often it was started before."""
        self.up = False
        """Whether it has made its environments."""
        self.steady = False
        """Whether it has answered anything in this life."""
        self.since = 0.0
        """When it was last seen to do something, or told to."""
        self.beat = 0
        self.owes = False
        """Whether it was said something that it has not answered."""
        self.fruitless = 0
        """Lives in a row in which it answered nothing."""
        self.in_a_row = 0
        """Lives in a row in which it ended no episode."""
        self.ended = 0
        """Episodes that it had ended when it was last lost."""
        self.said: SparringError | None = None
        """What it raised."""
        self.rest = b""
        """Of its standard error: a line that has not ended yet."""
        self.answers: list[Message] = []
        self.go = -1
        """The pipe that it listens to."""
        self.runs = False
        """Whether there is a process that nobody has ended."""

    def start(self, job: dict[str, Any], done: int) -> None:
        """Start the process and tell it what to make. done: where it writes that parts are."""
        go, mine = os.pipe()
        try:
            self.process = Child(MODULE, fds=(go, done), stdout=None)
        except BaseException:
            os.close(mine)
            raise
        finally:
            os.close(go)
        self.go, self.runs = mine, True
        self.up, self.steady, self.said, self.answers = False, False, None, []
        self.since, self.beat, self.owes = time.monotonic(), 0, False
        self.process.send(Message("job", job))

    def share(self, fd: int) -> None:
        """Hand over the memory; it may play now."""
        self.process.send(Message("memory"), [fd])
        self.up = True

    def tell(self, part: Part) -> None:
        """Ask for a part: its next step, or its games' beginning."""
        if not any(other.told for other in self.parts):
            self.since = time.monotonic()
        part.told = True
        if part.seeds is None:
            self._write(code(part.index))
        else:
            self.say(Message("start", {"part": part.index, "seeds": part.seeds}))

    def say(self, message: Message) -> None:
        """Say something that is no step."""
        self.process.send(message)
        self._write(code(CONTROL))

    def _write(self, raw: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self.go, raw)

    def hear(self) -> None:
        """Take in what it says; a refusal is its last word."""
        for message in self.process.receive():
            if message.name == ERROR:
                self.said = to_exception(message)
            else:
                self.answers.append(message)

    def memory_mib(self) -> float:
        """What it takes, as far as the system tells."""
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE_MIB
        except (OSError, IndexError):
            return 0.0

    def let_go(self) -> None:
        """Close the pipe that it listens to, at which it ends."""
        if self.go >= 0:
            os.close(self.go)
            self.go = -1

    def end(self, patience_s: float = 0.0) -> None:
        """End the process, and whatever it has started; wait until it is gone."""
        if not self.runs:
            return
        self.let_go()
        with contextlib.suppress(subprocess.TimeoutExpired):
            if patience_s > 0:
                self.process.process.wait(patience_s)
        self.hear()
        self.process.end()
        self.up = self.runs = False

    @property
    def was_killed(self) -> bool:
        """Whether somebody else ended the process: a person, or a system without memory."""
        return self.said is None and self.process.process.returncode == -signal.SIGKILL

    def farewell(self) -> str:
        """How it ended; if nothing was raised, with the place of its crash or its last line."""
        at, last = self.process.crash_location()
        if self.said or not (at or last):
            return self.how()
        return f"{self.how()} ({at})" if at else f"{self.how()}; it last said: {last}"

    def how(self) -> str:
        """How the process ended, in a line."""
        if self.said:
            return str(self.said)
        kind, _, which = self.process.exit_status.partition(" ")
        return f"killed by {which}" if kind == "signal" else f"ended with exit {which}"
