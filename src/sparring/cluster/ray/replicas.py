"""Replicas in a Ray cluster, one Ray actor each; gradients are summed directly, not through Ray."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import sparring
from sparring.cluster.actors.supervisor import LOOK_S, START_S
from sparring.cluster.ray.host import check_version
from sparring.cluster.ray.resources import ResourceRequest, WaitLine, is_placed, is_wanting, names
from sparring.cluster.ray.session import Cluster
from sparring.cluster.replicas.replica import Replica, ReplicaShare
from sparring.errors import SparringError, warn
from sparring.learn.learner import LostError
from sparring.messages import Message, error_reply


class ReplicaHost:
    """A Ray actor that holds a replica; messages are bytes."""

    def begin(self, begin: str) -> bytes:
        """Make games and network; return "ready" or an error."""
        values = json.loads(begin)
        try:
            check_version(values["version"])
            self._replica = Replica(values["settings"], values["share"])
        except SparringError as wrong:
            return error_reply(wrong).pack()
        return Message("ready").pack()

    def handle(self, raw: bytes) -> bytes:
        return self._replica.handle_bytes(raw)


class RayReplica:
    """Handle of a replica in Ray."""

    def __init__(
        self, cluster: Cluster, settings: Mapping[str, Any], share: ReplicaShare, timeout_s: float
    ) -> None:
        """Start it; its first message says that it is ready."""
        self.share, self._cluster, self._ray = share, cluster, cluster.ray
        self._limit_s, self._request = timeout_s, ResourceRequest(share.threads)
        host = cluster.ray.remote(
            **self._request.options,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )(ReplicaHost)
        self.actor: Any = host.remote()
        begin = json.dumps(
            {"settings": settings, "share": asdict(share), "version": sparring.__version__}
        )
        self._replies = deque([self.actor.begin.remote(begin)])
        self._patience_s, self._placed = timeout_s + START_S, False

    def send(self, message: Message) -> None:
        self._replies.append(self.actor.handle.remote(message.pack()))

    def _wait_for_place(self) -> None:
        """Wait until Ray has started the process, and say what it waits for."""
        wait_line, who = WaitLine(), names("replica", [self.share.rank])
        while not is_placed(self._ray, self.actor):
            if wait_line.due(True):
                if is_wanting(self._ray, self._request):
                    line = self._cluster.waiting_line(self._request, who)
                    warn(f"{line}; Ctrl-C ends the run")
                else:
                    wait_line.postpone()
            if wait_line.waited_s > self._patience_s:
                line = self._cluster.waiting_line(self._request, who)
                raise LostError(f"{line}, for longer than {self._patience_s:g} s")
            time.sleep(LOOK_S)
        self._placed = True

    def next_message(self) -> Message:
        errors = self._ray.exceptions
        if not self._placed:
            self._wait_for_place()
        try:
            raw = self._ray.get(self._replies.popleft(), timeout=self._patience_s)
        except errors.GetTimeoutError:
            raise LostError(
                f"replica {self.share.rank} sent nothing for {self._patience_s:g} s "
                "(distributed.timeout_s)"
            ) from None
        except (errors.RayError, IndexError) as wrong:
            first = next(iter(str(wrong).strip().splitlines()), "")
            raise LostError(f"replica {self.share.rank} has died: {first}") from None
        self._patience_s = self._limit_s
        return Message.unpack(raw)

    def has_died(self) -> bool:
        return False  # shows at the next message

    def end(self) -> None:
        self._ray.kill(self.actor)
