"""What runs inside an actor of Ray: a runner, and the newest weights that it was sent.

Text, bytes and arrays go in and out. It is made by a name that every machine has installed.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

import sparring
from sparring.cluster.actors.packing import counts_of
from sparring.cluster.actors.runner import ActorRunner, ActorShare
from sparring.errors import ConfigError, SparringError
from sparring.learn.rollout import Episodes, Truncations
from sparring.messages import Message, error_reply

Bytes = npt.NDArray[np.uint8]
PADDED = {f"cut.{one.name}": "cuts" for one in fields(Truncations)} | {
    f"end.{one.name}": "ends" for one in fields(Episodes)
}
"""Arrays that are longer than needed, and the count that says how many entries are used."""


class ActorHost:
    """A Ray actor that plays requests in order; weights may arrive during a rollout."""

    def __init__(self) -> None:
        self._newest: tuple[int, Bytes] = 0, np.zeros(0, np.uint8)

    def begin(self, begin: str) -> str:
        """Make games and network; return an error as JSON, "" if there is none."""
        values = json.loads(begin)
        try:
            check_version(values["version"])
            self._runner = ActorRunner(values["settings"], ActorShare(**values["share"]))
        except SparringError as wrong:
            return json.dumps(error_reply(wrong).payload)
        self._out = {
            name: np.zeros(shape, dtype) for name, (dtype, shape) in self._runner.shapes.items()
        }
        return ""

    def pid(self) -> int:
        return os.getpid()

    def post(self, version: int, weights: Bytes) -> None:
        """Use these weights for the next rollout, unless there are newer ones."""
        if version > self._newest[0]:
            self._newest = version, weights

    def play(self, number: int, version: int, weights: Bytes) -> Bytes:
        """Play a rollout with these weights or newer ones; return it as a message in bytes."""
        self.post(version, weights)
        payload = self._runner.play_request(
            number, self._out, lambda known: self._newest if self._newest[0] != known else None
        )
        return as_array(Message("rollout", payload, trim(self._out)))

    def handle(self, raw: Bytes) -> Bytes:
        """Apply a message between two rollouts; return the reply."""
        try:
            return as_array(self._runner.handle(Message.unpack(raw.data)))
        except SparringError as wrong:
            return as_array(error_reply(wrong))


def check_version(version: str) -> None:
    """Refuse work of a run with another version than this machine has."""
    if version != sparring.__version__:
        raise ConfigError(
            f"the machine {socket.gethostname()} has sparring {sparring.__version__}, and the run "
            f"{version}; install the same version on every machine of the cluster"
        )


def trim(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Cut off the unused entries of a packed rollout."""
    counts = counts_of(arrays)
    return {
        name: array[: counts[PADDED[name]]] if name in PADDED else array
        for name, array in arrays.items()
    }


def as_array(message: Message) -> Bytes:
    """A message as an array, which Ray stores without a copy."""
    return np.frombuffer(message.pack(), np.uint8)
