"""The pool's side of one worker process."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sparring.pools.workers.lines import CONTROL, Lines, code
from sparring.pools.workers.parts import Part
from sparring.processes import end_group, start_python

MODULE = "sparring.pools.workers.process"
TAIL = 4000
"""Bytes kept of what a worker has written to its standard error."""
CRASHED = "Fatal Python error"
FRAME = re.compile(r'^  File "(.*)", line (\d+) in ', re.MULTILINE)
"""What Python writes when a process crashes: the innermost call comes first."""
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
        self.said: dict[str, Any] | None = None
        """What it raised, in a line."""
        self.tail = b""
        self.rest = b""
        """Of its standard error: a line that has not ended yet."""
        self.answers: list[dict[str, Any]] = []
        self._fds: list[int] = []

    def start(self, job: dict[str, Any], done: int) -> None:
        """Start the process and tell it what to make. done: where it writes that parts are."""
        mine, theirs = socket.socketpair()
        go, self.go = os.pipe()
        self.err, err = os.pipe()
        os.set_blocking(self.err, False)
        files = (theirs.fileno(), go, done)
        try:
            self.process = start_python(
                MODULE,
                [str(number) for number in (os.getpid(), *files)],
                fds=files,
                stdin=subprocess.DEVNULL,
                stderr=err,
            )
        except BaseException:
            mine.close()
            for fd in (self.go, self.err):
                os.close(fd)
            raise
        finally:
            theirs.close()
            os.close(go)
            os.close(err)
        self.lines, self._fds = Lines(mine), [self.go, self.err]
        self.up, self.steady, self.said, self.tail, self.answers = False, False, None, b"", []
        self.since, self.beat, self.owes = time.monotonic(), 0, False
        with contextlib.suppress(OSError):  # it may be gone already, which is noticed later
            self.lines.send({**job, "path": sys.path})

    def share(self, fd: int) -> None:
        """Hand over the memory; it may play now."""
        with contextlib.suppress(OSError):
            socket.send_fds(self.lines.end, [b"m"], [fd])
        self.up = True

    def tell(self, part: Part) -> None:
        """Ask for a part: its next step, or its games' beginning."""
        if not any(other.told for other in self.parts):
            self.since = time.monotonic()
        part.told = True
        if part.seeds is None:
            self._write(code(part.index))
        else:
            self.say({"start": part.index, "seeds": part.seeds})

    def say(self, message: dict[str, Any]) -> None:
        """Say something in a line."""
        with contextlib.suppress(OSError):
            self.lines.send(message)
        self._write(code(CONTROL))

    def _write(self, raw: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self.go, raw)

    def hear(self) -> None:
        """Read what it says; what is no answer is kept as its last words."""
        for message in self.lines.arrived():
            if "raised" in message:
                self.said = message
            else:
                self.answers.append(message)

    def overhear(self) -> bytes:
        """Read what it writes to its standard error."""
        with contextlib.suppress(BlockingIOError):
            raw = os.read(self.err, 1 << 16)
            self.tail = (self.tail + raw)[-TAIL:]
            return raw
        return b""

    def memory_mib(self) -> float:
        """What it takes, as far as the system tells."""
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE_MIB
        except (OSError, IndexError):
            return 0.0

    def let_go(self) -> None:
        """Close the pipe that it listens to, at which it ends."""
        if self._fds and self.go in self._fds:
            self._fds.remove(self.go)
            os.close(self.go)

    def end(self, patience_s: float = 0.0) -> None:
        """End the process, and whatever it has started; wait until it is gone."""
        if not self._fds:
            return
        self.let_go()
        with contextlib.suppress(subprocess.TimeoutExpired):
            if patience_s > 0:
                self.process.wait(patience_s)
        end_group(self.process)
        while self.overhear():
            pass
        self.hear_rest()
        self.lines.end.close()
        for fd in self._fds:
            os.close(fd)
        self._fds, self.up = [], False

    def hear_rest(self) -> None:
        """Read what it said before it ended."""
        self.lines.end.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while not self.lines.closed:
                self.hear()

    @property
    def was_killed(self) -> bool:
        """Whether somebody else ended the process: a person, or a system without memory."""
        return self.said is None and self.process.returncode == -signal.SIGKILL

    def farewell(self) -> str:
        """How it ended; if nothing was raised, with the place of its crash or its last line."""
        text = self.tail.decode(errors="replace").strip()
        if self.said or not text:
            return self.how()
        _, crashed, frames = text.rpartition(CRASHED)
        if not crashed:
            return f"{self.how()}; it last said: {text.splitlines()[-1]}"
        place = FRAME.search(frames)
        return f"{self.how()} ({Path(place[1]).name}:{place[2]})" if place else self.how()

    def how(self) -> str:
        """How the process ended, in a line."""
        if self.said:
            return str(self.said["raised"]).splitlines()[0]
        status = self.process.returncode
        if status is not None and status < 0:
            with contextlib.suppress(ValueError):
                return f"killed by {signal.Signals(-status).name}"
        return f"ended with exit code {status}"
