"""Rare words between a pool and its workers: a line of JSON each, over a socket."""

from __future__ import annotations

import json
import socket
from typing import Any

CHUNK = 1 << 16
CONTROL = 0xFFFF
"""In place of a part's number: a line is waiting."""
CODE_BYTES = 2


def code(part: int) -> bytes:
    """A part's number as pipes carry it."""
    return part.to_bytes(CODE_BYTES, "little")


def codes(raw: bytes) -> list[int]:
    """The numbers that a pipe brought; whole ones, as they are written whole."""
    return [
        int.from_bytes(raw[at : at + CODE_BYTES], "little") for at in range(0, len(raw), CODE_BYTES)
    ]


class Lines:
    """One end of the socket."""

    def __init__(self, end: socket.socket) -> None:
        self.end, self._rest, self.closed = end, b"", False

    def send(self, message: dict[str, Any]) -> None:
        """Say something."""
        self.end.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any] | None:
        """Wait for a line; None when nobody is there any more."""
        while b"\n" not in self._rest:
            if not self._read():
                return None
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def arrived(self) -> list[dict[str, Any]]:
        """What has come, once the socket is known to have something; `closed` at its end."""
        self._read()
        *whole, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in whole]

    def _read(self) -> bool:
        try:
            raw = self.end.recv(CHUNK)
        except ConnectionError:
            raw = b""
        self.closed = self.closed or not raw
        self._rest += raw
        return bool(raw)
