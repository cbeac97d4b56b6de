"""What processes say to each other: a name, plain values and arrays, as bytes.

No code travels in it: JSON for the values, the bytes of the arrays behind it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import SparringError, StateError

ALIGNMENT = 16
REFUSED = "refused"
"""What an answer is called that says what is wrong."""
HEAD = 8
"""Bytes that say how long a message is."""
MAX_FILES = 32
CHUNK = 1 << 20


@dataclass(frozen=True)
class Message:
    """One of them."""

    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Plain values."""
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def pack(self) -> bytes:
        shapes = {name: (array.dtype.str, array.shape) for name, array in self.arrays.items()}
        head = json.dumps([self.name, self.facts, shapes]).encode()
        parts = [len(head).to_bytes(8, "little"), padded(head)]
        parts += [padded(np.ascontiguousarray(array).tobytes()) for array in self.arrays.values()]
        return b"".join(parts)

    @classmethod
    def unpack(cls, raw: bytes | bytearray | memoryview) -> Message:
        """Read it; its arrays are views into these bytes."""
        view = memoryview(raw)
        try:
            length = int.from_bytes(view[:8], "little")
            name, facts, shapes = json.loads(bytes(view[8 : 8 + length]))
            at, arrays = 8 + padded_size(length), {}
            for key, (kind, shape) in shapes.items():
                count = int(np.prod(shape, dtype=np.int64))
                arrays[key] = np.frombuffer(view, kind, count, at).reshape(shape)
                at += padded_size(arrays[key].nbytes)
        except (ValueError, TypeError, KeyError) as wrong:
            raise StateError(f"a message of {len(view)} bytes cannot be read: {wrong}") from wrong
        return cls(name, facts, arrays)


def padded_size(size: int) -> int:
    """With what it takes to the next boundary."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def padded(raw: bytes) -> bytes:
    """Bytes up to the next boundary."""
    return raw + bytes(padded_size(len(raw)) - len(raw))


def refusal(wrong: SparringError) -> Message:
    return Message(REFUSED, {"kind": type(wrong).__name__, "text": str(wrong)})


def checked(message: Message) -> Message:
    """Return an answer; raise what another process found wrong as if it had happened here."""
    if message.name == REFUSED:
        raise error_of(message)
    return message


def error_of(message: Message) -> SparringError:
    """The error of a refusal. A kind that nobody has loaded here is a plain one."""
    kinds = {kind.__name__: kind for kind in kinds_below(SparringError)}
    kind = kinds.get(str(message.facts.get("kind")), SparringError)
    return kind(str(message.facts.get("text", f"another process says {message.name!r}")))


def kinds_below(kind: type[SparringError]) -> Iterator[type[SparringError]]:
    """Yield all kinds of an error that this process knows."""
    for one in kind.__subclasses__():
        yield one
        yield from kinds_below(one)


class Channel:
    """One end of a socket between two processes of a machine: messages, files included.

    Where the socket does not block, nobody ever waits here: what cannot be sent yet goes with
    the next `flush`. That the other side is gone is noticed by whoever reads.
    """

    def __init__(self, end: socket.socket) -> None:
        """Speak and hear over a socket."""
        self.socket = end
        self.fds: list[int] = []
        """Files that came along."""
        self.closed = False
        """Whether the other side has said everything that it ever will."""
        self._raw = bytearray()
        self._unsent: deque[tuple[memoryview, Sequence[int]]] = deque()
        self._sending = threading.Lock()

    @property
    def waits(self) -> bool:
        """Whether something has not been sent yet."""
        return bool(self._unsent)

    def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Send a message, and files along with it."""
        raw = message.pack()
        with self._sending:
            self._unsent.append((memoryview(len(raw).to_bytes(HEAD, "little") + raw), fds))
        self.flush()

    def flush(self) -> None:
        """Send as much as goes."""
        with self._sending, contextlib.suppress(BlockingIOError):
            while self._unsent:
                raw, fds = self._unsent[0]
                try:
                    sent = (
                        socket.send_fds(self.socket, [raw], fds) if fds else self.socket.send(raw)
                    )
                except (ConnectionError, TimeoutError):
                    self._unsent.clear()
                    return
                self._unsent[0] = raw[sent:], ()
                if sent == len(raw):
                    self._unsent.popleft()

    def read(self) -> bool:
        """Read what is there, something at least if the socket blocks; whether there was any."""
        try:
            raw, fds, _, _ = socket.recv_fds(self.socket, CHUNK, MAX_FILES)
        except BlockingIOError:
            return False
        except ConnectionError:
            raw, fds = b"", []
        for fd in fds:
            os.set_inheritable(fd, False)
        self.fds += fds
        self._raw += raw
        self.closed = not raw
        return bool(raw)

    def messages(self) -> list[Message]:
        """Return those that are complete."""
        found = []
        while len(self._raw) >= HEAD:
            end = HEAD + int.from_bytes(self._raw[:HEAD], "little")
            if len(self._raw) < end:
                break
            found.append(Message.unpack(self._raw[HEAD:end]))
            del self._raw[:end]
        return found

    def close(self) -> None:
        """Let go of the socket, and of files that nobody has taken."""
        self.socket.close()
        for fd in self.fds:
            os.close(fd)
        self.fds = []
