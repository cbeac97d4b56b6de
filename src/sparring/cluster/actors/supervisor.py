"""Supervision of a run's actors: send requests, receive rollouts, restart actors that fail.

`processes` runs actors on this machine with shared memory, `ray.supervisor` in a Ray cluster.
"""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.cluster.actors.runner import ActorShare
from sparring.errors import SparringError, SparringWarning
from sparring.learn.learner import LostError
from sparring.messages import Message

MAX_FAILED = 3
"""Consecutive starts of an actor without a rollout after which the run ends."""
START_S = 120.0
"""Seconds more than `distributed.timeout_s` that an actor may take until its games have started."""
LOOK_S = 1.0
"""Seconds between two checks for actors that are late."""


@dataclass(frozen=True)
class RolloutRequest:
    """A rollout that an actor shall play, with the newest weights."""

    actor: int
    number: int
    """Number of the rollout, which seeds its actions."""


@dataclass(frozen=True)
class RolloutBatch:
    """A finished rollout."""

    request: RolloutRequest
    version: int
    """Version of the weights that played it."""
    arrays: Mapping[str, npt.NDArray[Any]]
    """As `packing` lays them out. Valid until the batch is released."""
    played_s: float
    """Seconds that playing took."""
    idle_s: float
    """Seconds before it in which the actor had no request."""
    incarnation: int = 0
    """How often the actor had been started before. Each incarnation plays other games."""


@dataclass(frozen=True)
class PendingReply:
    """A request or message that an actor has not answered."""

    answer: Any
    """Where the answer will be: the index of a buffer, or Ray's object reference."""
    request: RolloutRequest | None = None
    """The rollout, None for a message."""


class ActorHandle:
    """Handle of one actor: what it has not answered, and when it last answered."""

    def __init__(self, share: ActorShare) -> None:
        self.share = share
        self.pending: deque[PendingReply] = deque()
        """In the order in which they are answered."""
        self.since = 0.0
        """Time of its last answer."""
        self.ready = False

    def add_pending(self, answer: Any, request: RolloutRequest | None = None) -> None:
        if not self.pending:
            self.since = time.monotonic()
        self.pending.append(PendingReply(answer, request))

    @property
    def requests(self) -> list[RolloutRequest]:
        """Rollouts that have not arrived."""
        return [one.request for one in self.pending if one.request is not None]

    def late(self, timeout_s: float) -> bool:
        """Whether it has not answered in time."""
        timeout_s += 0 if self.ready else START_S
        busy = bool(self.pending) or not self.ready
        return busy and time.monotonic() - self.since > timeout_s

    def make_batch(
        self, request: RolloutRequest, payload: Mapping[str, Any], arrays: Mapping[str, Any]
    ) -> RolloutBatch:
        """Wrap a rollout that has arrived. payload: of `ActorRunner.play_request`."""
        self.since = time.monotonic()
        times = payload["played_s"], payload["idle_s"]
        return RolloutBatch(request, payload["version"], arrays, *times, self.share.incarnation)


class ActorSupervisor:
    """All actors of a run: sends messages, collects rollouts, restarts actors that fail.

    A restarted actor receives the remembered messages again. The requests it had are lost:
    `pop_lost` returns them.
    """

    def __init__(self, handles: Sequence[Any], max_restarts: int) -> None:
        """max_restarts: restarts of all actors together, after which the run ends."""
        self._handles, self._max_restarts = handles, max_restarts
        self.size = len(handles)
        self._remembered: dict[tuple[str, Any], Message] = {}
        self._lost: list[RolloutRequest] = []
        self._shown: set[str] = set()
        self._failed: dict[int, int] = {}
        self.restarts = 0
        """Restarts so far, of all actors together."""

    # Implemented by processes and by Ray

    def publish(self, version: int, weights: npt.NDArray[np.uint8]) -> None:
        """Make weights available to the rollouts that start from now on."""
        raise NotImplementedError

    def submit(self, request: RolloutRequest) -> None:
        """Have a rollout played; an actor plays its requests in order.

        An actor has at most `distributed.queue` + 1 requests and unreleased batches.
        """
        raise NotImplementedError

    def release(self, batch: RolloutBatch) -> None:
        """Let the memory of a batch be reused."""

    def call(self, message: Message, actor: int) -> Message:
        """Send a message to an actor that has no requests, and wait for its reply."""
        raise NotImplementedError

    def close(self) -> None:
        """End all actors."""
        raise NotImplementedError

    def _poll(self, wait_s: float) -> list[RolloutBatch]:
        """Wait for replies; return batches that have arrived, and restart dead or late actors."""
        raise NotImplementedError

    def _start(self, handle: Any) -> None:
        """Start an actor and send it the remembered messages."""
        raise NotImplementedError

    def _send_all(self, message: Message) -> None:
        raise NotImplementedError

    # Common to both

    def receive(self, timeout_s: float) -> Sequence[RolloutBatch]:
        """Return batches in order of arrival.

        Wait until one arrives or is lost, an actor has started, or the timeout.
        """
        until = time.monotonic() + timeout_s
        starting = [handle for handle in self._handles if not handle.ready]
        while True:
            left = until - time.monotonic()
            found = self._poll(min(max(left, 0.0), LOOK_S))
            if found or self._lost or left <= 0 or any(one.ready for one in starting):
                return found

    def broadcast(self, message: Message) -> None:
        """Send a message to every actor, which applies it between two rollouts.

        A restarted actor receives it again; of messages with the same name and `payload["key"]`
        only the last.
        """
        self.remember(message)
        self._send_all(message)

    def remember(self, message: Message) -> None:
        """Keep a message for actors that are restarted; the order is that of the last sending."""
        name = (message.name, message.payload.get("key"))
        self._remembered.pop(name, None)
        self._remembered[name] = message

    @property
    def remembered(self) -> list[Message]:
        """Messages that a restarted actor receives."""
        return list(self._remembered.values())

    def pop_lost(self) -> Sequence[RolloutRequest]:
        """Return requests that were lost with their actors since the last call."""
        lost, self._lost = self._lost, []
        return lost

    def is_ready(self, actor: int) -> bool:
        """Whether an actor plays as soon as it is asked; one on a lost machine may take hours."""
        ready: bool = self._handles[actor].ready
        return ready

    def note_rollout(self, actor: int) -> None:
        """Note that an actor has finished a rollout."""
        self._failed.pop(actor, None)

    def _restart(self, handle: Any, how: str, output: str, *, killed: bool = False) -> None:
        share, requests, ready = handle.share, handle.requests, handle.ready
        handle.pending.clear()
        state: dict[str, Any] = {"ready": ready, "incarnation": share.incarnation}
        self.note_death(share.index, how, requests, output=output, killed=killed, **state)
        handle.share, handle.ready = replace(share, incarnation=share.incarnation + 1), False
        self._start(handle)

    def note_death(
        self,
        actor: int,
        how: str,
        requests: Iterable[RolloutRequest],
        *,
        output: str = "",
        ready: bool = True,
        incarnation: int = 0,
        killed: bool = False,
    ) -> None:
        """Record the end of an actor and its lost requests; raise if it must not be restarted.

        how: "died" or "hung", for messages. output: the last lines it printed. ready: its games had
        started. killed: from outside, which says nothing of a restart; an environment that raises
        will raise again.
        """
        self._lost += requests
        self._failed[actor] = failed = self._failed.get(actor, 0) + (not killed)
        who, printed = f"actor {actor} {how}", f"; its last output:\n{output}" if output else ""
        if not ready and incarnation == 0 and not killed:
            raise SparringError(f"{who} before it was ready{printed}")
        if failed >= MAX_FAILED:
            raise LostError(f"{who}, {failed} times in a row without a rollout{printed}")
        self.restarts += 1
        if self.restarts > self._max_restarts:
            raise LostError(
                f"{who}: restart {self.restarts} of actors, more than distributed.max_restarts "
                f"{self._max_restarts}{printed}"
            )
        if f"{how}{output}" not in self._shown:
            self._shown.add(f"{how}{output}")
            text = f"{who}; it is restarted with new games{printed}"
            warnings.warn(SparringWarning(text), stacklevel=5)
