"""Other learners in a Ray cluster, one actor each; sums go between them, not through Ray."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sparring.cluster.ray.session import Cluster
from sparring.cluster.replicas.replica import Replica, Share
from sparring.errors import SparringError
from sparring.learn.learner import LostError
from sparring.messages import Message, refusal

START_S = 120.0
"""Seconds more than `distributed.timeout_s` that the first answer may take."""


class ReplicaHost:
    """What runs inside an actor: bytes go in and out."""

    def begin(self, facts: str) -> bytes:
        """Make games and network; say what is wrong with them."""
        told = json.loads(facts)
        try:
            self._replica = Replica(told["settings"], told["share"])
        except SparringError as wrong:
            return refusal(wrong).pack()
        return Message("ready").pack()

    def hear(self, raw: bytes) -> bytes:
        """Do what a message says."""
        return self._replica.hear(raw)


class RayReplica:
    """An actor that learns with the run's learner."""

    def __init__(
        self, cluster: Cluster, settings: Mapping[str, Any], share: Share, timeout_s: float
    ) -> None:
        """Start it; it says when it is ready."""
        self.share, self._ray, self._limit_s = share, cluster.ray, timeout_s
        host = cluster.ray.remote(
            num_cpus=share.threads,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )(ReplicaHost)
        self.actor: Any = host.remote()
        begin = json.dumps({"settings": settings, "share": asdict(share)})
        self._answers = deque([self.actor.begin.remote(begin)])
        self._patience_s = timeout_s + START_S

    def tell(self, message: Message) -> None:
        """Have it do something; it does one thing after the other."""
        self._answers.append(self.actor.hear.remote(message.pack()))

    def answer(self) -> Message:
        """Wait for what it says to that."""
        wrongs = self._ray.exceptions
        try:
            raw = self._ray.get(self._answers.popleft(), timeout=self._patience_s)
        except wrongs.GetTimeoutError:
            raise LostError(
                f"replica {self.share.rank} has said nothing for {self._patience_s:g} s "
                "(distributed.timeout_s)"
            ) from None
        except (wrongs.RayError, IndexError) as wrong:
            first = next(iter(str(wrong).strip().splitlines()), "")
            raise LostError(f"replica {self.share.rank} has died: {first}") from None
        self._patience_s = self._limit_s
        return Message.unpack(raw)

    def end(self) -> None:
        """Let it go."""
        self._ray.kill(self.actor)
