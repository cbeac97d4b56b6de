"""Other learners in a Ray cluster, each where there are CPUs, or a GPU, for it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.cluster.messages import Message
from sparring.cluster.ray_crew import why
from sparring.cluster.ray_host import as_array
from sparring.cluster.replica import JOIN, Replica, Share, refusal
from sparring.cluster.session import Cluster, connect
from sparring.errors import SparringError
from sparring.learn.learner import LostError

Bytes = npt.NDArray[np.uint8]
START_S = 120.0
"""Seconds more than `fleet.limit_s` until its games have begun."""


class ReplicaHost:
    """What runs inside an actor of Ray: a learner with a share of the games."""

    def begin(self, begin: str) -> Bytes:
        """Make games and network, or say what cannot be."""
        facts = json.loads(begin)
        try:
            self._replica = Replica(facts["settings"], facts["share"])
        except SparringError as wrong:
            return as_array(refusal(wrong))
        return as_array(Message("ready"))

    def hear(self, said: Bytes) -> Bytes:
        """Do what a message says; return the answer."""
        message = Message.unpack(said.data)
        if message.name == JOIN:  # the others reach it at the address of its own machine
            own = {**message.facts, "own_host": address_here()}
            message = replace(message, facts=own)
        return np.frombuffer(self._replica.hear(message.pack()), np.uint8)


class RayReplica:
    """Another learner as the first one sees it."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Mapping[str, Any],
        share: Share,
        limit_s: float,
        *,
        shared: bool = False,
    ) -> None:
        """Start it; it says when it is ready.

        limit_s: how long an answer may take. shared: others use the cluster when this ends.
        """
        self.share, self._cluster, self._limit_s = share, cluster, limit_s
        self._shared = shared
        self._actor = cluster.ray.remote(
            num_cpus=share.threads,
            num_gpus=1 if cluster.gpus else 0,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )(ReplicaHost).remote()
        begin = json.dumps({"settings": settings, "share": asdict(share)})
        self._said: deque[Any] = deque([self._actor.begin.remote(begin)])
        self._limits = deque([limit_s + START_S])

    def tell(self, message: Message) -> None:
        """Have it do something; it does one thing after the other."""
        self._said.append(self._actor.hear.remote(as_array(message)))
        self._limits.append(self._limit_s)

    def answer(self) -> Message:
        """Wait for what it says to that."""
        ray, limit_s = self._cluster.ray, self._limits.popleft()
        try:
            return Message.unpack(ray.get(self._said.popleft(), timeout=limit_s).data)
        except TimeoutError:
            raise LostError(
                f"replica {self.share.rank} has said nothing for {limit_s:g} s (fleet.limit_s)"
            ) from None
        except ray.exceptions.RayError as wrong:
            raise LostError(f"replica {self.share.rank} has died ({why(wrong)})") from None

    def end(self) -> None:
        """Let it go, and the cluster with the last one."""
        if self._cluster.open:
            self._cluster.ray.kill(self._actor, no_restart=True)
            if self.share.rank == self.share.size - 1 and not self._shared:
                self._cluster.close()


def address_here() -> str:
    """The address of this machine, as others of the cluster reach it."""
    import ray

    return str(ray.util.get_node_ip_address())


def ray_replicas(
    word: str, settings: Mapping[str, Any], shares: Sequence[Share], limit_s: float
) -> tuple[str, list[RayReplica]]:
    """Start or join a cluster; return the address of this machine there, and the learners."""
    needed = sum(share.threads for share in shares)
    cluster = connect(word, cpus=needed)
    try:
        cluster.demand_cpus(needed, f"replicas {len(shares) + 1}:")
        made = [RayReplica(cluster, settings, share, limit_s) for share in shares]
        return address_here(), made
    except BaseException:
        cluster.close()
        raise
