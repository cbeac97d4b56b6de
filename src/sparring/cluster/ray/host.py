"""What runs inside an actor of Ray: a body, and the newest weights that it was sent.

Text, bytes and arrays go in and out. It is made by a name that every machine has installed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.cluster.actors.body import Body, Place
from sparring.cluster.actors.packing import counts_of
from sparring.errors import SparringError
from sparring.learn.rollout import Episodes, Truncations
from sparring.messages import Message, refusal

Bytes = npt.NDArray[np.uint8]
FEW = {f"cut.{one.name}": "cuts" for one in fields(Truncations)} | {
    f"end.{one.name}": "ends" for one in fields(Episodes)
}
"""Arrays with room for more than there usually is, and what says how much is used."""


class Host:
    """Plays orders one after the other; weights may come in the middle of one."""

    def __init__(self) -> None:
        """Be there; games begin with `begin`, which can say what is wrong with them."""
        self._newest: tuple[int, Bytes] = 0, np.zeros(0, np.uint8)

    def begin(self, begin: str) -> str:
        """Make the games; return what cannot be, as JSON, nothing if all is well."""
        facts = json.loads(begin)
        try:
            self._body = Body(facts["settings"], Place(**facts["place"]))
        except SparringError as wrong:
            return json.dumps(refusal(wrong).facts)
        self._out = {
            name: np.zeros(shape, kind) for name, (kind, shape) in self._body.shapes.items()
        }
        return ""

    def pid(self) -> int:
        """The process that it lives in."""
        return os.getpid()

    def post(self, version: int, weights: Bytes) -> None:
        """Let the next rollout be played with these weights, if there are none newer."""
        if version > self._newest[0]:
            self._newest = version, weights

    def play(self, number: int, version: int, weights: Bytes) -> Bytes:
        """Play a rollout with these weights or newer ones; return a message as bytes."""
        self.post(version, weights)
        facts = self._body.fulfill(
            number, self._out, lambda known: self._newest if self._newest[0] != known else None
        )
        return as_array(Message("parcel", facts, trimmed(self._out)))

    def hear(self, said: Bytes) -> Bytes:
        """Hear a message between two rollouts; return the answer."""
        try:
            return as_array(self._body.hear(Message.unpack(said.data)))
        except SparringError as wrong:
            return as_array(refusal(wrong))


def trimmed(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Leave out room that a packed rollout does not use."""
    counts = counts_of(arrays)
    return {
        name: array[: counts[FEW[name]]] if name in FEW else array for name, array in arrays.items()
    }


def as_array(message: Message) -> Bytes:
    """A message as Ray keeps it without a copy."""
    return np.frombuffer(message.pack(), np.uint8)
