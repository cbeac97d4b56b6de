"""Actors in a Ray cluster, on one machine or many.

Weights go through Ray's object store, once to every machine; rollouts come back through it without
a copy. An actor that dies, or does not answer in time, is restarted.
"""

from __future__ import annotations

import contextlib
import json
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

import sparring
from sparring.cluster.actors.runner import ActorShare
from sparring.cluster.actors.supervisor import (
    LOOK_S,
    START_S,
    ActorHandle,
    ActorSupervisor,
    PendingReply,
    RolloutBatch,
    RolloutRequest,
)
from sparring.cluster.ray.host import ActorHost, as_array
from sparring.cluster.ray.resources import ResourceRequest, WaitLine, is_placed, is_wanting, names
from sparring.cluster.ray.session import Cluster, connect
from sparring.config import DistributedConfig
from sparring.errors import StateError, warn
from sparring.learn.learner import LostError
from sparring.messages import ERROR, Message, raise_if_error

POST = "post"
"""Concurrency group of calls that do not wait for the end of a rollout."""


class RayActorHandle(ActorHandle):
    """Handle of an actor in Ray."""

    actor: Any = None
    placed = False
    """Whether Ray has started its process; until then it waits for CPUs."""

    def late(self, timeout_s: float) -> bool:
        return self.placed and super().late(timeout_s)


class RaySupervisor(ActorSupervisor):
    """All actors of a run, as Ray actors."""

    _handles: Sequence[RayActorHandle]

    def __init__(
        self,
        cluster: Cluster,
        settings: Mapping[str, Any],
        shares: Sequence[ActorShare],
        distributed: DistributedConfig,
        *,
        shared: bool = False,
    ) -> None:
        """Start the actors.

        settings: of the run, as in its file. shared: leave the cluster open at the end.
        """
        super().__init__([RayActorHandle(share) for share in shares], distributed.max_restarts)
        self._cluster, self._distributed, self._settings = cluster, distributed, settings
        self._request, self._wait_line = ResourceRequest(distributed.threads), WaitLine()
        why = f"actors {len(shares)} with distributed.threads {distributed.threads}"
        cluster.check_room(len(shares), self._request, why, "an actor")
        # Ray retries nothing: a call that fails is a lost request.
        self._hosts = cluster.ray.remote(
            **self._request.options,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
            concurrency_groups={POST: 1},
        )(ActorHost)
        self._weights: tuple[int, Any] | None = None
        self._batches: list[RolloutBatch] = []
        """Rollouts that arrived during a call."""
        self._end = weakref.finalize(self, end_all, cluster, self._handles, shared)
        for handle in self._handles:
            self._start(handle)

    @property
    def pids(self) -> list[int]:
        """Process ids, each on its machine; 0 for an actor that has just died."""
        ray, found = self._cluster.ray, [0] * self.size
        for actor, handle in enumerate(self._handles):
            with contextlib.suppress(ray.exceptions.RayError):
                call = handle.actor.pid.options(concurrency_group=POST).remote()
                found[actor] = int(ray.get(call))
        return found

    def publish(self, version: int, weights: npt.NDArray[np.uint8]) -> None:
        self._weights = version, self._cluster.ray.put(weights)
        for handle in self._handles:
            if handle.requests:  # idle actors get them with their next request
                handle.actor.post.options(concurrency_group=POST).remote(*self._weights)

    def submit(self, request: RolloutRequest) -> None:
        if self._weights is None:
            raise StateError("a rollout was requested before any weights; call publish first")
        handle = self._handles[request.actor]
        handle.add_pending(handle.actor.play.remote(request.number, *self._weights), request)

    def call(self, message: Message, actor: int) -> Message:
        handle, ray = self._handles[actor], self._cluster.ray
        sent = ray.put(as_array(message))
        while True:
            while not handle.ready:
                self._batches += self._exchange(LOOK_S)
            timeout_s = self._distributed.timeout_s + START_S
            try:
                raw = ray.get(handle.actor.handle.remote(sent), timeout=timeout_s)
            except (ray.exceptions.RayError, TimeoutError) as wrong:
                self._replace(handle, wrong)
                continue
            return raise_if_error(Message.unpack(raw.data))

    def close(self) -> None:
        self._end()

    def _send_all(self, message: Message) -> None:
        sent = self._cluster.ray.put(as_array(message))
        for handle in self._handles:
            if handle.ready:  # others get it from `remembered`
                handle.add_pending(handle.actor.handle.remote(sent))

    def _start(self, handle: RayActorHandle) -> None:
        handle.actor, handle.placed = self._hosts.remote(), False
        begin = json.dumps(
            {
                "settings": self._settings,
                "share": asdict(handle.share),
                "version": sparring.__version__,
            }
        )
        handle.add_pending(handle.actor.begin.remote(begin))

    def _replace(self, handle: RayActorHandle, wrong: BaseException) -> None:
        killed = isinstance(wrong, self._cluster.ray.exceptions.RayActorError)
        end(self._cluster, handle)
        self._restart(handle, "died", describe(wrong), killed=killed)

    def _poll(self, wait_s: float) -> list[RolloutBatch]:
        batches, self._batches = self._batches, []
        return batches + self._exchange(0.0 if batches else wait_s)

    def _note_waiting(self) -> None:
        """Say what actors wait for; end the run if none has found a place for too long."""
        ray = self._cluster.ray
        for handle in self._handles:
            if not handle.placed and is_placed(ray, handle.actor):
                handle.placed, handle.since = True, time.monotonic()
        waiting = [handle.share.index for handle in self._handles if not handle.placed]
        alone, due = len(waiting) == self.size, self._wait_line.due(bool(waiting))
        over_s = self._wait_line.waited_s - self._distributed.timeout_s
        if not due and not (alone and over_s > 0):
            return
        if not is_wanting(ray, self._request):  # a process starts, which may take a while
            if due:
                self._wait_line.postpone()
            if not alone or over_s < START_S:
                return
        line = self._cluster.waiting_line(self._request, names("actor", waiting))
        if alone and over_s > 0:
            limit = f"distributed.timeout_s {self._distributed.timeout_s:g}"
            raise LostError(f"{line}, for longer than {limit}")
        others = "" if alone else "; the others play"
        warn(f"{line}{others}; Ctrl-C ends the run and saves it")

    def _exchange(self, wait_s: float) -> list[RolloutBatch]:
        ray = self._cluster.ray
        if not all(handle.placed for handle in self._handles) or self._wait_line.waited_s:
            self._note_waiting()
        waiting = [one.answer for handle in self._handles for one in handle.pending]
        if not waiting:
            return []
        arrived, _ = ray.wait(waiting, num_returns=1, timeout=wait_s)
        if arrived and len(waiting) > 1:
            arrived, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
        answers = set(arrived)
        batches: list[RolloutBatch] = []
        for handle in self._handles:
            try:
                while handle.pending and handle.pending[0].answer in answers:
                    batches += self._read_answer(handle, handle.pending[0])
                    handle.pending.popleft()
            except ray.exceptions.RayError as wrong:
                self._replace(handle, wrong)
                continue
            if handle.late(self._distributed.timeout_s):
                end(self._cluster, handle)
                limit = f"distributed.timeout_s {self._distributed.timeout_s:g}"
                self._restart(handle, "hung", f"no answer within {limit}")
        return batches

    def _read_answer(self, handle: RayActorHandle, pending: PendingReply) -> list[RolloutBatch]:
        raw = self._cluster.ray.get(pending.answer)
        handle.since = time.monotonic()
        if isinstance(raw, str):  # the answer of `begin`: "", or an error
            if raw:
                raise_if_error(Message(ERROR, json.loads(raw)))
            handle.ready = True
            for known in self.remembered:
                handle.add_pending(handle.actor.handle.remote(as_array(known)))
            return []
        message = raise_if_error(Message.unpack(raw.data))
        if pending.request is None:
            return []
        self.note_rollout(handle.share.index)
        return [handle.make_batch(pending.request, message.payload, message.arrays)]


def start_ray_actors(
    address: str,
    settings: Mapping[str, Any],
    shares: Sequence[ActorShare],
    distributed: DistributedConfig,
) -> RaySupervisor:
    """Start or join a cluster, and start the actors of a run there."""
    cluster = connect(address, cpus=len(shares) * distributed.threads)
    try:
        return RaySupervisor(cluster, settings, shares, distributed)
    except BaseException:
        cluster.close()
        raise


def end(cluster: Cluster, handle: RayActorHandle) -> None:
    if handle.actor is not None and cluster.open:
        cluster.ray.kill(handle.actor, no_restart=True)


def end_all(cluster: Cluster, handles: Sequence[RayActorHandle], shared: bool) -> None:
    """End all actors, and leave the cluster unless it is shared."""
    for handle in handles:
        end(cluster, handle)
    if not shared:
        cluster.close()


def describe(wrong: BaseException) -> str:
    """One line about an error of Ray."""
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    cause = getattr(wrong, "cause", None)
    if cause is not None:  # an exception in the actor: the last line of the traceback names it
        return lines[-1] if lines else repr(cause)
    return lines[0] if lines else repr(wrong)
