"""Actors as processes of this machine: rollouts and weights in shared memory."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.cluster.actors.runner import ActorShare
from sparring.cluster.actors.supervisor import (
    LOOK_S,
    ActorHandle,
    ActorSupervisor,
    RolloutBatch,
    RolloutRequest,
)
from sparring.cluster.actors.weights import SharedWeights
from sparring.config import DistributedConfig
from sparring.learn.learner import LostError
from sparring.messages import Message, raise_if_error, to_exception
from sparring.processes import CLOSE_S, Child, SharedArrays, wait_any

KILLED = ("signal SIGKILL", "signal SIGTERM")
"""Exit statuses of processes that were ended from outside."""
MAX_OUTPUT = 2000
"""Characters of a dead actor's output that are shown."""


class ProcessActorHandle(ActorHandle):
    """Handle of an actor process, with the buffers that its rollouts are written to."""

    process: Child | None = None

    def __init__(self, share: ActorShare) -> None:
        super().__init__(share)
        self.free: list[int] = []
        """Indices of unused buffers."""
        self.memory: list[SharedArrays] = []

    def send(self, message: Message) -> None:
        if self.process is not None:
            self.process.send(message)

    def map_buffers(self, process: Child, shapes: Mapping[str, Any]) -> None:
        """Map the buffers of an actor that is ready."""
        known = {name: (np.dtype(dtype), tuple(shape)) for name, (dtype, shape) in shapes.items()}
        self.memory = [SharedArrays(known, fd) for fd in process.channel.fds]
        process.channel.fds, self.ready = [], True
        self.since = time.monotonic()

    def end(self, patience_s: float = 0.0) -> tuple[str, str]:
        """End the process and free its memory; return its exit status and last output."""
        process, self.process = self.process, None
        if process is None:
            return "", ""
        process.end(patience_s)
        for memory in self.memory:
            memory.close()
        self.memory = []
        output = process.output_tail[-MAX_OUTPUT:].decode(errors="replace").strip()
        return process.exit_status, output


class ProcessSupervisor(ActorSupervisor):
    """One process for every actor."""

    _handles: Sequence[ProcessActorHandle]

    def __init__(
        self,
        settings: Mapping[str, Any],
        shares: Sequence[ActorShare],
        distributed: DistributedConfig,
        size: int,
    ) -> None:
        """Start the processes; they are ready some seconds later.

        settings: of the run, as in its file. size: bytes of the network's weights.
        """
        super().__init__([ProcessActorHandle(share) for share in shares], distributed.max_restarts)
        self._settings, self._distributed = settings, distributed
        self._weights = SharedWeights(size)
        self._batches: list[RolloutBatch] = []
        """Rollouts that arrived during a call."""
        self._buffers: dict[int, tuple[ProcessActorHandle, int, int]] = {}
        """Handle, incarnation and buffer index of every unreleased batch, by its `id`."""
        self._replies: dict[int, Message] = {}
        self._calls = 0
        self._end = weakref.finalize(self, end_all, self._handles, self._weights)
        for handle in self._handles:
            self._start(handle)

    @property
    def pids(self) -> list[int]:
        return [handle.process.pid for handle in self._handles if handle.process]

    def publish(self, version: int, weights: npt.NDArray[np.uint8]) -> None:
        self._weights.write(version, weights)

    def submit(self, request: RolloutRequest) -> None:
        handle = self._handles[request.actor]
        buffer = handle.free.pop()
        handle.add_pending(buffer, request)
        handle.send(Message("play", {"number": request.number, "buffer": buffer}))

    def release(self, batch: RolloutBatch) -> None:
        handle, incarnation, buffer = self._buffers.pop(id(batch))
        if handle.share.incarnation == incarnation:
            handle.free.append(buffer)

    def call(self, message: Message, actor: int) -> Message:
        handle = self._handles[actor]
        self._calls += 1
        numbered = Message(message.name, {**message.payload, "call": self._calls}, message.arrays)
        incarnation = -1
        while self._calls not in self._replies:
            if handle.process is None:
                raise LostError(f"actor {actor} has ended and is not restarted")
            if handle.share.incarnation != incarnation:  # a restarted actor has not received it
                incarnation = handle.share.incarnation
                handle.add_pending(self._calls)
                handle.send(numbered)
            self._batches += self._exchange(LOOK_S)
        return raise_if_error(self._replies.pop(self._calls))

    def close(self) -> None:
        self._end()

    def _send_all(self, message: Message) -> None:
        for handle in self._handles:
            handle.send(message)

    def _start(self, handle: ProcessActorHandle) -> None:
        handle.free, weights = list(range(self._distributed.queue + 1)), self._weights
        handle.process = Child(
            "sparring.cluster.actors.actor", fds=[weights.fd], threads=handle.share.threads
        )
        handle.since = time.monotonic()
        begin = {"settings": self._settings, "share": asdict(handle.share), "size": weights.size}
        handle.send(Message("begin", {**begin, "buffers": len(handle.free)}))
        for message in self.remembered:
            handle.send(message)

    # Receiving

    def _poll(self, wait_s: float) -> list[RolloutBatch]:
        batches, self._batches = self._batches, []
        return batches + self._exchange(0.0 if batches else wait_s)

    def _exchange(self, wait_s: float) -> list[RolloutBatch]:
        """Receive messages, and restart actors that have died or hang."""
        wait_any([handle.process for handle in self._handles if handle.process], wait_s)
        batches: list[RolloutBatch] = []
        for handle in self._handles:
            if handle.process is None:
                continue
            for message in handle.process.receive():
                batches += self._handle_message(handle, message)
            handle.process.read_output()
            if handle.process.has_ended:
                self._replace(handle, "died")
            elif handle.late(self._distributed.timeout_s):
                self._replace(handle, "hung")
        return batches

    def _handle_message(self, handle: ProcessActorHandle, message: Message) -> list[RolloutBatch]:
        payload = message.payload
        if message.name == "ready":
            assert handle.process
            handle.map_buffers(handle.process, payload["shapes"])
        elif message.name == "rollout":
            pending = handle.pending.popleft()
            self.note_rollout(handle.share.index)
            assert pending.request
            arrays = handle.memory[pending.answer].items()
            batch = handle.make_batch(pending.request, payload, arrays)
            self._buffers[id(batch)] = (handle, handle.share.incarnation, pending.answer)
            return [batch]
        elif "call" in payload:
            self._replies[handle.pending.popleft().answer] = message
            handle.since = time.monotonic()
        else:
            raise to_exception(message)
        return []

    def _replace(self, handle: ProcessActorHandle, how: str) -> None:
        status, output = handle.end()
        died = how == "died"
        text = f"{how} ({status})" if died else how
        self._restart(handle, text, output, killed=died and status in KILLED)


def end_all(handles: Sequence[ProcessActorHandle], weights: SharedWeights) -> None:
    """End all processes within `CLOSE_S` seconds together."""
    for handle in handles:
        if handle.process is not None:
            handle.process.channel.close()
    until = time.monotonic() + CLOSE_S
    for handle in handles:
        handle.end(max(until - time.monotonic(), 0.0))
    weights.close()
