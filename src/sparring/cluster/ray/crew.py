"""Actors in a Ray cluster: on this machine or on many, placed by what they need.

Weights go through the object store, once to every machine; rollouts come back through it and are
read where they lie. An actor that dies, or hands in nothing for too long, is started anew.
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

from sparring.cluster.actors.body import Place
from sparring.cluster.actors.crew import START_S, Asked, Crew, Hand, Order, Parcel
from sparring.cluster.ray.host import Host, as_array
from sparring.cluster.ray.session import Cluster, connect
from sparring.config import DistributedConfig
from sparring.errors import StateError
from sparring.messages import REFUSED, Message, checked

POST = "post"
"""The group of calls that do not wait for a rollout to end."""


class RayHand(Hand):
    """An actor of Ray."""

    actor: Any = None


class RayCrew(Crew):
    """All actors of a run, in Ray."""

    _hands: Sequence[RayHand]

    def __init__(
        self,
        cluster: Cluster,
        settings: Mapping[str, Any],
        places: Sequence[Place],
        distributed: DistributedConfig,
        *,
        shared: bool = False,
    ) -> None:
        """Start the actors.

        settings: of the run, as its file has them. shared: others use the cluster when this ends.
        """
        super().__init__([RayHand(place) for place in places], distributed.max_restarts)
        self._cluster, self._distributed, self._settings = cluster, distributed, settings
        cluster.check_cpus(
            len(places) * distributed.threads,
            f"actors {len(places)}: with distributed.threads {distributed.threads}",
        )
        # Nothing is done twice: a call that fails is an order that is lost.
        self._hosts = cluster.ray.remote(
            num_cpus=distributed.threads,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
            concurrency_groups={POST: 1},
        )(Host)
        self._weights: tuple[int, Any] | None = None
        self._end = weakref.finalize(self, end_all, cluster, self._hands, shared)
        for hand in self._hands:
            self._start(hand)

    @property
    def pids(self) -> list[int]:
        """Their processes, each on its own machine; 0 for one that has just died."""
        ray, found = self._cluster.ray, [0] * self.size
        for actor, hand in enumerate(self._hands):
            with contextlib.suppress(ray.exceptions.RayError):
                call = hand.actor.pid.options(concurrency_group=POST).remote()
                found[actor] = int(ray.get(call))
        return found

    def publish(self, version: int, weights: npt.NDArray[np.uint8]) -> None:
        self._weights = version, self._cluster.ray.put(weights)
        for hand in self._hands:
            if hand.orders:  # others get them with their next order
                hand.actor.post.options(concurrency_group=POST).remote(*self._weights)

    def give(self, order: Order) -> None:
        if self._weights is None:
            raise StateError("an order before any weights; publish some first")
        hand = self._hands[order.actor]
        hand.expect(hand.actor.play.remote(order.number, *self._weights), order)

    def ask(self, message: Message, actor: int) -> Message:
        hand, ray = self._hands[actor], self._cluster.ray
        said = ray.put(as_array(message))
        while True:
            timeout_s = self._distributed.timeout_s + START_S
            try:
                raw = ray.get(hand.actor.hear.remote(said), timeout=timeout_s)
            except (ray.exceptions.RayError, TimeoutError) as wrong:
                self._died(hand, wrong)
                continue
            return checked(Message.unpack(raw.data))

    def close(self) -> None:
        self._end()

    def _tell(self, message: Message) -> None:
        said = self._cluster.ray.put(as_array(message))
        for hand in self._hands:
            hand.expect(hand.actor.hear.remote(said))

    def _start(self, hand: RayHand) -> None:
        hand.actor = self._hosts.remote()
        begin = json.dumps({"settings": self._settings, "place": asdict(hand.place)})
        hand.expect(hand.actor.begin.remote(begin))
        for message in self.kept:
            hand.expect(hand.actor.hear.remote(as_array(message)))

    def _died(self, hand: RayHand, wrong: BaseException) -> None:
        """Start an actor anew whose call has failed."""
        gone = isinstance(wrong, self._cluster.ray.exceptions.RayActorError)
        end(self._cluster, hand)
        self._again(hand, "died", why(wrong), killed=gone)

    def _look(self, wait_s: float) -> list[Parcel]:
        ray = self._cluster.ray
        waiting = [one.answer for hand in self._hands for one in hand.asked]
        if not waiting:
            return []
        come, _ = ray.wait(waiting, num_returns=1, timeout=wait_s)
        if come and len(waiting) > 1:
            come, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
        here = set(come)
        parcels: list[Parcel] = []
        for hand in self._hands:
            try:
                while hand.asked and hand.asked[0].answer in here:
                    parcels += self._heard(hand, hand.asked[0])
                    hand.asked.popleft()
            except ray.exceptions.RayError as wrong:
                self._died(hand, wrong)
                continue
            if hand.late(self._distributed.timeout_s):
                end(self._cluster, hand)
                self._again(
                    hand,
                    "hung",
                    f"nothing within distributed.timeout_s {self._distributed.timeout_s:g}",
                )
        return parcels

    def _heard(self, hand: RayHand, asked: Asked) -> list[Parcel]:
        """Read an answer; return the rollout that it is, if it is one."""
        raw = self._cluster.ray.get(asked.answer)
        hand.since = time.monotonic()
        if isinstance(raw, str):  # games have begun, or cannot
            if raw:
                checked(Message(REFUSED, json.loads(raw)))
            hand.ready = True
            return []
        message = checked(Message.unpack(raw.data))
        if asked.order is None:
            return []
        self.played(hand.place.index)
        return [hand.parcel(asked.order, message.facts, message.arrays)]


def ray_crew(
    word: str, settings: Mapping[str, Any], places: Sequence[Place], distributed: DistributedConfig
) -> RayCrew:
    """Start or join a cluster, and start the actors of a run there."""
    cluster = connect(word, cpus=len(places) * distributed.threads)
    try:
        return RayCrew(cluster, settings, places, distributed)
    except BaseException:
        cluster.close()
        raise


def end(cluster: Cluster, hand: RayHand) -> None:
    """End an actor, whatever it does."""
    if hand.actor is not None and cluster.open:
        cluster.ray.kill(hand.actor, no_restart=True)


def end_all(cluster: Cluster, hands: Sequence[RayHand], shared: bool) -> None:
    """End all actors and leave the cluster, if nobody else needs it."""
    for hand in hands:
        end(cluster, hand)
    if not shared:
        cluster.close()


def why(wrong: BaseException) -> str:
    """Say in a line what happened to an actor."""
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    cause = getattr(wrong, "cause", None)
    if cause is not None:  # the program of an actor failed: its last line says how
        return lines[-1] if lines else repr(cause)
    return lines[0] if lines else repr(wrong)
