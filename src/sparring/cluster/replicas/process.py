"""Another learner as a process of this machine."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import weakref
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sparring.cluster.messages import Message
from sparring.cluster.replicas.replica import Share
from sparring.cluster.wire import Inbox, send
from sparring.learn.learner import LostError
from sparring.processes import end_group, start_python

CLOSE_S = 5.0
"""Seconds that a process may take to end by itself."""


class ReplicaProcess:
    """A process, and the socket that it is talked to over."""

    def __init__(self, settings: Mapping[str, Any], share: Share, limit_s: float) -> None:
        """Start it; it says when it is ready. limit_s: how long an answer may take."""
        self.share, self.limit_s = share, limit_s
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(limit_s)
        self._inbox = Inbox(self._socket)
        self._said: list[Message] = []
        with theirs:
            words = [str(os.getpid()), str(theirs.fileno())]
            self.process = start_python(
                "sparring.cluster.replicas.replica",
                words,
                fds=[theirs.fileno()],
                threads=share.threads,
                stdin=subprocess.DEVNULL,
            )
        self._end = weakref.finalize(self, end, self._socket, self.process)
        self.tell(Message("begin", {"settings": settings, "share": asdict(share)}))

    def tell(self, message: Message) -> None:
        """Have it do something; it does one thing after the other."""
        with contextlib.suppress(ConnectionError):  # whoever waits for the answer is told
            send(self._socket, message)

    def answer(self) -> Message:
        """Wait for what it says to that."""
        while not self._said:
            try:
                there = self._inbox.fill()
            except TimeoutError:
                raise LostError(
                    f"replica {self.share.rank} has said nothing for {self.limit_s:g} s "
                    "(fleet.limit_s)"
                ) from None
            if not there:
                raise LostError(f"replica {self.share.rank} has died ({self._how()})")
            self._said = self._inbox.messages()
        return self._said.pop(0)

    def _how(self) -> str:
        """How it ended."""
        try:
            code = self.process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            return "it does not answer"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def end(self) -> None:
        """Let it go; nothing of it is left."""
        self._end()


def end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Close the connection, which ends it; kill it if it does not."""
    connection.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(CLOSE_S)
    end_group(process)
