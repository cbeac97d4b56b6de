"""Messages over a socket between two processes of one machine, files included."""

from __future__ import annotations

import os
import socket

from sparring.cluster.messages import Message

HEAD = 8
"""Bytes that say how long a message is."""
MOST_FILES = 32
CHUNK = 1 << 20


def send(to: socket.socket, message: Message, fds: list[int] | None = None) -> None:
    """Send a message, and files along with it."""
    raw = message.pack()
    head = len(raw).to_bytes(HEAD, "little")
    if fds:
        sent = socket.send_fds(to, [head], fds)
        head = head[sent:]
    to.sendall(head + raw)


class Inbox:
    """What has come over a socket, cut into messages."""

    def __init__(self, source: socket.socket) -> None:
        """Read from a socket."""
        self._socket, self._raw = source, bytearray()
        self.fds: list[int] = []
        """Files that came along."""

    def fill(self) -> bool:
        """Read what is there, at least something; False when the other side is gone."""
        try:
            raw, fds, _, _ = socket.recv_fds(self._socket, CHUNK, MOST_FILES)
        except (ConnectionResetError, BrokenPipeError):
            return False
        for fd in fds:
            os.set_inheritable(fd, False)
        self.fds += fds
        self._raw += raw
        return bool(raw)

    def messages(self) -> list[Message]:
        """Return those that are complete."""
        found = []
        while len(self._raw) >= HEAD:
            end = HEAD + int.from_bytes(self._raw[:HEAD], "little")
            if len(self._raw) < end:
                break
            found.append(Message.unpack(bytes(self._raw[HEAD:end])))
            del self._raw[:end]
        return found
