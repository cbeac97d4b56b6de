"""What learner and actors say to each other: a name, plain values and arrays, as bytes.

No code travels in it: JSON for the values, the bytes of the arrays behind it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import errors
from sparring.errors import SparringError, StateError

ALIGNMENT = 16
REFUSED = "refused"
"""What an answer is called that says what is wrong."""


@dataclass(frozen=True)
class Message:
    """One of them."""

    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Plain values."""
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def pack(self) -> bytes:
        """Return it as bytes."""
        shapes = {name: (array.dtype.str, array.shape) for name, array in self.arrays.items()}
        head = json.dumps([self.name, self.facts, shapes], allow_nan=False).encode()
        parts = [len(head).to_bytes(8, "little"), padded(head)]
        parts += [padded(np.ascontiguousarray(array).tobytes()) for array in self.arrays.values()]
        return b"".join(parts)

    @classmethod
    def unpack(cls, raw: bytes | memoryview) -> Message:
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
    """What is wrong, as an answer."""
    return Message(REFUSED, {"kind": type(wrong).__name__, "text": str(wrong)})


def error_of(message: Message) -> SparringError:
    """What another process found wrong, as if it had happened here."""
    from sparring.learn.learner import DivergedError, LostError  # late: it brings torch along

    known = [one for one in vars(errors).values() if isinstance(one, type)]
    kinds = {kind.__name__: kind for kind in (*known, DivergedError, LostError)}
    kind = kinds.get(str(message.facts.get("kind")), SparringError)
    text = str(message.facts.get("text", f"an actor says {message.name!r}"))
    return kind(text) if issubclass(kind, SparringError) else SparringError(text)
