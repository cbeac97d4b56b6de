"""Messages between processes: a name, JSON values and numpy arrays, as bytes.

They carry no code: JSON for the values, followed by the bytes of the arrays.
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
ERROR = "refused"
"""Name of a reply that reports an error."""
HEADER_BYTES = 8
"""Bytes in front of a message on a socket: its length."""
MAX_FILES = 32
CHUNK = 1 << 20


@dataclass(frozen=True)
class Message:
    """A name, JSON values and numpy arrays."""

    name: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    """Values that JSON can hold."""
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def pack(self) -> bytes:
        shapes = {name: (array.dtype.str, array.shape) for name, array in self.arrays.items()}
        head = json.dumps([self.name, self.payload, shapes]).encode()
        parts = [len(head).to_bytes(8, "little"), padded(head)]
        parts += [padded(np.ascontiguousarray(array).tobytes()) for array in self.arrays.values()]
        return b"".join(parts)

    @classmethod
    def unpack(cls, raw: bytes | bytearray | memoryview) -> Message:
        """Read a message; its arrays are views of the bytes."""
        view = memoryview(raw)
        try:
            length = int.from_bytes(view[:8], "little")
            name, payload, shapes = json.loads(bytes(view[8 : 8 + length]))
            offset, arrays = 8 + padded_size(length), {}
            for key, (dtype, shape) in shapes.items():
                count = int(np.prod(shape, dtype=np.int64))
                arrays[key] = np.frombuffer(view, dtype, count, offset).reshape(shape)
                offset += padded_size(arrays[key].nbytes)
        except (ValueError, TypeError, KeyError) as wrong:
            raise StateError(f"a message of {len(view)} bytes cannot be read: {wrong}") from wrong
        return cls(name, payload, arrays)


def padded_size(size: int) -> int:
    """Round up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def padded(raw: bytes) -> bytes:
    return raw + bytes(padded_size(len(raw)) - len(raw))


def error_reply(error: SparringError) -> Message:
    return Message(ERROR, {"kind": type(error).__name__, "text": str(error)})


def raise_if_error(message: Message) -> Message:
    """Return a reply; raise the error that it reports as if it had happened here."""
    if message.name == ERROR:
        raise to_exception(message)
    return message


def to_exception(message: Message) -> SparringError:
    """The exception of an error reply: a `SparringError` if its class is not loaded here."""
    classes = {one.__name__: one for one in subclasses(SparringError)}
    kind = classes.get(str(message.payload.get("kind")), SparringError)
    return kind(str(message.payload.get("text", f"another process sent {message.name!r}")))


def subclasses(kind: type[SparringError]) -> Iterator[type[SparringError]]:
    """Yield all loaded subclasses of an error, also indirect ones."""
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


class Channel:
    """One end of a socket between two processes of a machine: sends messages and open files.

    On a non-blocking socket no call waits: unsent bytes go with the next `flush`. `read` notices
    that the other side has closed.
    """

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.fds: list[int] = []
        """Files received and not yet taken."""
        self.closed = False
        """Whether the other side has closed its end."""
        self._raw = bytearray()
        self._unsent: deque[tuple[memoryview, Sequence[int]]] = deque()
        self._sending = threading.Lock()

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Send a message, and open files along with it."""
        raw = message.pack()
        with self._sending:
            self._unsent.append((memoryview(len(raw).to_bytes(HEADER_BYTES, "little") + raw), fds))
        self.flush()

    def flush(self) -> None:
        """Send as many bytes as the socket takes."""
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
        """Read available bytes, at least one if the socket blocks; return whether any came."""
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
        """Return the complete messages received so far."""
        found = []
        while len(self._raw) >= HEADER_BYTES:
            end = HEADER_BYTES + int.from_bytes(self._raw[:HEADER_BYTES], "little")
            if len(self._raw) < end:
                break
            found.append(Message.unpack(self._raw[HEADER_BYTES:end]))
            del self._raw[:end]
        return found

    def close(self) -> None:
        """Close the socket, and received files that were not taken."""
        self.socket.close()
        for fd in self.fds:
            os.close(fd)
        self.fds = []
