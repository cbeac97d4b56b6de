"""The pool's handle of one worker process."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from sparring.errors import SparringError
from sparring.messages import ERROR, Message, to_exception
from sparring.pools.workers.parts import CONTROL, GamePart, code
from sparring.processes import Child

MODULE = "sparring.pools.workers.process"
PAGE_MIB = mmap.PAGESIZE / 2**20


class Worker:
    """Handle of a worker: its process, its pipe, and when it last answered."""

    def __init__(self, index: int, parts: list[GamePart]) -> None:
        self.index, self.parts = index, parts
        self.incarnation = 0
        """How often it was started before."""
        self.ready = False
        """Whether it has made its environments."""
        self.has_stepped = False
        """Whether it has stepped anything since its start."""
        self.since = 0.0
        """Time of its last answer, or of the request that it works on."""
        self.beat = 0
        self.awaits_reply = False
        """Whether it has to reply to a message."""
        self.starts_without_step = 0
        """Consecutive starts without a step."""
        self.failures_in_a_row = 0
        """Consecutive failures without an episode that ended."""
        self.ended = 0
        """Episodes that had ended at its last failure."""
        self.error: SparringError | None = None
        """The error that it reported."""
        self.partial_line = b""
        """Incomplete last line of its output."""
        self.answers: list[Message] = []
        self.pipe = -1
        """Pipe for commands to it."""
        self.has_process = False
        """Whether it has a process that was not ended."""

    def start(self, job: dict[str, Any], done: int) -> None:
        """Start the process. done: pipe into which it writes the parts that it has stepped."""
        go, mine = os.pipe()
        try:
            self.process = Child(MODULE, fds=(go, done), stdout=None)
        except BaseException:
            os.close(mine)
            raise
        finally:
            os.close(go)
        self.pipe, self.has_process = mine, True
        self.ready = self.has_stepped = False
        self.error, self.answers = None, []
        self.since, self.beat, self.awaits_reply = time.monotonic(), 0, False
        self.process.send(Message("job", job))

    def share(self, fd: int) -> None:
        """Send the shared memory; the worker can step from now on."""
        self.process.send(Message("memory"), [fd])
        self.ready = True

    def send_part(self, part: GamePart) -> None:
        """Request a part's next step, or the start of its games."""
        if not any(other.sent for other in self.parts):
            self.since = time.monotonic()
        part.sent = True
        if part.seeds is None:
            self._write(code(part.index))
        else:
            self.send(Message("start", {"part": part.index, "seeds": part.seeds}))

    def send(self, message: Message) -> None:
        """Send a message."""
        self.process.send(message)
        self._write(code(CONTROL))

    def _write(self, raw: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self.pipe, raw)

    def receive(self) -> None:
        """Receive messages and errors."""
        for message in self.process.receive():
            if message.name == ERROR:
                self.error = to_exception(message)
            else:
                self.answers.append(message)

    def memory_mib(self) -> float:
        """Resident memory, 0 where /proc is missing."""
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE_MIB
        except (OSError, IndexError):
            return 0.0

    def close_pipe(self) -> None:
        """Close the pipe, which ends the worker."""
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1

    def end(self, patience_s: float = 0.0) -> None:
        """End the process and its children."""
        if not self.has_process:
            return
        self.close_pipe()
        with contextlib.suppress(subprocess.TimeoutExpired):
            if patience_s > 0:
                self.process.process.wait(patience_s)
        self.receive()
        self.process.end()
        self.ready = self.has_process = False

    @property
    def was_killed(self) -> bool:
        """Whether it was killed from outside, by a person or for lack of memory."""
        return self.error is None and self.process.process.returncode == -signal.SIGKILL

    def describe_end(self) -> str:
        """How it ended, with the location of a crash or its last line of output."""
        location, last = self.process.crash_location()
        if self.error or not (location or last):
            return self.exit_text()
        return (
            f"{self.exit_text()} ({location})"
            if location
            else f"{self.exit_text()}; it last said: {last}"
        )

    def exit_text(self) -> str:
        """The error it reported, or its exit status."""
        if self.error:
            return str(self.error)
        kind, _, which = self.process.exit_status.partition(" ")
        return f"killed by {which}" if kind == "signal" else f"ended with exit {which}"
