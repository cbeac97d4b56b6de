"""One actor process as its learner sees it: started, told, listened to, buried."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np

from sparring.cluster.actors.board import Board
from sparring.cluster.actors.body import Place
from sparring.cluster.actors.crew import Order
from sparring.cluster.messages import Message
from sparring.cluster.wire import Inbox, send
from sparring.processes import SharedArrays, end_group, start_python

LAST_WORDS = 2000
"""Bytes of a dead actor's last words that are shown."""
START_S = 120.0
"""Seconds more than `fleet.limit_s` that an actor may take until it is ready."""
MOST_WORDS = 1 << 20
"""Bytes of what it says that are kept while it lives."""


@dataclass(frozen=True)
class Given:
    """An order and the buffer that it is played into."""

    order: Order
    buffer: int


class Hand:
    """A process, the socket to it, and what it holds."""

    def __init__(
        self, settings: Mapping[str, Any], place: Place, board: Board, buffers: int, limit_s: float
    ) -> None:
        """Start nothing yet."""
        self.place, self._settings, self._board = place, settings, board
        self._buffers, self._limit_s = buffers, limit_s
        self.process: subprocess.Popen[bytes] | None = None
        self.given: deque[Given] = deque()
        """Orders that it has not handed in."""
        self.free: list[int] = []
        """Buffers that nobody needs."""
        self.memory: list[SharedArrays] = []
        self.ready = False
        self.since = 0.0
        """When it last did something."""
        self._later: list[Message] = []
        self._broken = False

    def start(self, kept: Iterable[Message], *, again: bool) -> None:
        """Start the process and tell it everything that is to be known."""
        if again:
            self.place = replace(self.place, life=self.place.life + 1)
        self.ready = self._broken = False
        self.memory, self.free = [], list(range(self._buffers))
        mine, theirs = socket.socketpair()
        self._words: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        # It writes at the end wherever we read, and also after we have emptied the file.
        fcntl.fcntl(self._words, fcntl.F_SETFL, os.O_RDWR | os.O_APPEND)
        fds = [theirs.fileno(), self._board.fd]
        words = [os.getpid(), *fds, self._board.size]
        try:
            self.process = start_python(
                "sparring.cluster.actors.actor",
                [str(word) for word in words],
                fds=fds,
                threads=self.place.threads,
                stdin=subprocess.DEVNULL,
                stdout=self._words,
                stderr=self._words,
            )
        finally:
            theirs.close()
        mine.settimeout(self._limit_s)
        self.socket, self.inbox = mine, Inbox(mine)
        self.pidfd = watched(self.process.pid)
        self.since = time.monotonic()
        begin = {
            "settings": self._settings,
            "place": self.place.plain(),
            "buffers": self._buffers,
        }
        self._send(Message("begin", begin))
        self._later = list(kept)

    def tell(self, message: Message) -> None:
        """Say something; what it is told before it is ready waits here."""
        if self.ready:
            self._send(message)
        else:
            self._later.append(message)

    def give(self, order: Order) -> None:
        """Have a rollout played."""
        given = Given(order, self.free.pop())
        if not self.given:
            self.since = time.monotonic()
        self.given.append(given)
        self.tell(Message("order", {"number": order.number, "buffer": given.buffer}))

    def begin(self, message: Message) -> None:
        """It is ready: take over its memory, and tell it what has waited."""
        shapes = {
            name: (np.dtype(kind), tuple(shape))
            for name, (kind, shape) in message.facts["shapes"].items()
        }
        self.memory = [SharedArrays(shapes, fd) for fd in self.inbox.fds]
        self.inbox.fds, self.ready = [], True
        self.since = time.monotonic()
        later, self._later = self._later, []
        for one in later:
            self._send(one)

    def _send(self, message: Message) -> None:
        """Send; that nobody is there to hear it is noticed elsewhere."""
        if self._broken:
            return
        try:
            send(self.socket, message)
        except OSError:  # also one that does not read for so long
            self._broken = True

    @property
    def hangs(self) -> bool:
        """Whether it should have done something for too long."""
        if self._broken:
            return True
        waited_s = time.monotonic() - self.since
        if not self.ready:
            return waited_s > self._limit_s + START_S
        return bool(self.given) and waited_s > self._limit_s

    def bury(self, timeout_s: float = 0.0) -> str:
        """End the process and let go of everything; return how it ended, in words."""
        if self.process is None:
            return ""
        self.socket.close()  # this alone ends one that still lives
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout_s)
        end_group(self.process)
        code = self.process.returncode
        self.process = None
        if self.pidfd >= 0:
            os.close(self.pidfd)
        for fd in self.inbox.fds:
            os.close(fd)
        self._words.close()
        for memory in self.memory:
            memory.close()
        self.memory = []
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def last_words(self) -> str:
        """The end of what it said."""
        end = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(end - LAST_WORDS, 0))
        return self._words.read().decode(errors="replace").strip()

    def forget_words(self) -> None:
        """Keep what it says from filling the disk; the file is written at its end."""
        if os.fstat(self._words.fileno()).st_size > MOST_WORDS:
            os.ftruncate(self._words.fileno(), 0)


def watched(pid: int) -> int:
    """A file that can be read when a process has ended, -1 where there are none of these."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
