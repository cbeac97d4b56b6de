"""Actors in a Ray cluster: on this machine or on many, placed by what they need.

Weights go through the object store, once to every machine; rollouts come back through it and are
read where they lie. An actor that dies, or hands in nothing for too long, is started anew.
"""

from __future__ import annotations

import contextlib
import json
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.cluster.actors.body import Place
from sparring.cluster.actors.crew import Order, Parcel
from sparring.cluster.actors.standing import Standing
from sparring.cluster.messages import REFUSED, Message, error_of
from sparring.cluster.ray.host import Host, as_array
from sparring.cluster.ray.session import Cluster, connect
from sparring.config import FleetConfig
from sparring.errors import StateError

START_S = 120.0
"""Seconds more than `fleet.limit_s` that an actor may take until its games have begun."""
LOOK_S = 1.0
"""Seconds between two looks at who is late."""
POST = "post"
"""The group of calls that do not wait for a rollout to end."""


@dataclass(frozen=True)
class Asked:
    """A call whose answer has not come."""

    answer: Any
    """Ray's reference to it."""
    order: Order | None = None
    """What is played, if anything is."""


class Hand:
    """One actor as its learner sees it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.actor: Any = None
        self.asked: deque[Asked] = deque()
        """In the order in which they are answered."""
        self.since = 0.0
        """When it last did something."""
        self.ready = False

    def expect(self, answer: Any, order: Order | None = None) -> None:
        """Wait for an answer."""
        if not self.asked:
            self.since = time.monotonic()
        self.asked.append(Asked(answer, order))

    @property
    def orders(self) -> list[Order]:
        """What it has not handed in."""
        return [one.order for one in self.asked if one.order is not None]

    def late(self, limit_s: float) -> bool:
        """Whether it should have done something for too long."""
        limit_s += 0 if self.ready else START_S
        return bool(self.asked) and time.monotonic() - self.since > limit_s


class RayCrew:
    """All actors of a run, in Ray."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Mapping[str, Any],
        places: Sequence[Place],
        fleet: FleetConfig,
        *,
        shared: bool = False,
    ) -> None:
        """Start the actors.

        settings: of the run, as its file has them. shared: others use the cluster when this ends.
        """
        self._cluster, self._fleet = cluster, fleet
        self._settings = settings
        cluster.demand_cpus(
            len(places) * fleet.threads, f"actors {len(places)}: with fleet.threads {fleet.threads}"
        )
        # Nothing is done twice: a call that fails is an order that is lost.
        self._hosts = cluster.ray.remote(
            num_cpus=fleet.threads,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
            concurrency_groups={POST: 1},
        )(Host)
        self._standing = Standing(fleet.most_restarts)
        self._weights: tuple[int, Any] | None = None
        self._hands = [Hand(place) for place in places]
        self._end = weakref.finalize(self, end_all, cluster, self._hands, shared)
        for hand in self._hands:
            self._start(hand)

    @property
    def size(self) -> int:
        """How many actors there are."""
        return len(self._hands)

    @property
    def restarts(self) -> int:
        """How often one was started again."""
        return self._standing.restarts

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
        """Let rollouts that begin from now on be played with these weights."""
        self._weights = version, self._cluster.ray.put(weights)
        for hand in self._hands:
            if hand.orders:  # others get them with their next order
                hand.actor.post.options(concurrency_group=POST).remote(*self._weights)

    def give(self, order: Order) -> None:
        """Have a rollout played."""
        if self._weights is None:
            raise StateError("an order before any weights; publish some first")
        hand = self._hands[order.actor]
        hand.expect(hand.actor.play.remote(order.number, *self._weights), order)

    def take(self, timeout_s: float) -> Sequence[Parcel]:
        """Return parcels that have come; wait for one or for a loss, so long at most."""
        until = time.monotonic() + timeout_s
        while True:
            left = until - time.monotonic()
            found = self._look(min(max(left, 0.0), LOOK_S))
            if found or self._standing.loses or left <= 0:
                return found

    def release(self, parcel: Parcel) -> None:
        """Do nothing: the memory goes when nobody reads it any more."""

    def lost(self) -> Sequence[Order]:
        """Return orders that died with their actors since this was asked the last time."""
        return self._standing.lost()

    def tell(self, message: Message) -> None:
        """Say something to every actor, between its rollouts and in order."""
        self._standing.keep(message)
        said = self._cluster.ray.put(as_array(message))
        for hand in self._hands:
            hand.expect(hand.actor.hear.remote(said))

    def ask(self, message: Message, actor: int) -> Message:
        """Ask an actor that has no orders, and wait for its answer."""
        hand, ray = self._hands[actor], self._cluster.ray
        said = ray.put(as_array(message))
        while True:
            limit_s = self._fleet.limit_s + START_S
            try:
                raw = ray.get(hand.actor.hear.remote(said), timeout=limit_s)
            except (ray.exceptions.RayError, TimeoutError) as wrong:
                gone = isinstance(wrong, ray.exceptions.RayActorError)
                self._again(hand, "died", why(wrong), killed=gone)
                continue
            return checked(Message.unpack(raw.data))

    def close(self) -> None:
        """End all actors and leave the cluster."""
        self._end()

    def _start(self, hand: Hand) -> None:
        """Start an actor and tell it all it has to know."""
        hand.actor, hand.ready = self._hosts.remote(), False
        hand.asked.clear()
        begin = json.dumps({"settings": self._settings, "place": hand.place.plain()})
        hand.expect(hand.actor.begin.remote(begin))
        for message in self._standing.kept:
            hand.expect(hand.actor.hear.remote(as_array(message)))

    def _again(self, hand: Hand, how: str, words: str, *, killed: bool = False) -> None:
        """Start an actor anew; what it had to play is lost. killed: whether somebody ended it."""
        end(self._cluster, hand)
        self._standing.died(
            hand.place.index,
            how,
            hand.orders,
            words=words,
            ready=hand.ready,
            life=hand.place.life,
            killed=killed,
        )
        hand.place = replace(hand.place, life=hand.place.life + 1)
        self._start(hand)

    def _look(self, timeout_s: float) -> list[Parcel]:
        """Take what has come; start anew whoever is dead or late."""
        ray = self._cluster.ray
        waiting = [one.answer for hand in self._hands for one in hand.asked]
        if not waiting:
            return []
        come, _ = ray.wait(waiting, num_returns=1, timeout=timeout_s)
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
                gone = isinstance(wrong, ray.exceptions.RayActorError)
                self._again(hand, "died", why(wrong), killed=gone)
                continue
            if hand.late(self._fleet.limit_s):
                self._again(hand, "hung", f"nothing within fleet.limit_s {self._fleet.limit_s:g}")
        return parcels

    def _heard(self, hand: Hand, asked: Asked) -> list[Parcel]:
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
        facts = message.facts
        self._standing.played(hand.place.index)
        return [
            Parcel(
                asked.order,
                int(facts["version"]),
                message.arrays,
                float(facts["played_s"]),
                float(facts["idle_s"]),
                hand.place.life,
            )
        ]


def ray_crew(
    word: str, settings: Mapping[str, Any], places: Sequence[Place], fleet: FleetConfig
) -> RayCrew:
    """Start or join a cluster, and start the actors of a run there."""
    cluster = connect(word, cpus=len(places) * fleet.threads)
    try:
        return RayCrew(cluster, settings, places, fleet)
    except BaseException:
        cluster.close()
        raise


def end(cluster: Cluster, hand: Hand) -> None:
    """End an actor, whatever it does."""
    if hand.actor is not None and cluster.open:
        cluster.ray.kill(hand.actor, no_restart=True)


def end_all(cluster: Cluster, hands: Sequence[Hand], shared: bool) -> None:
    """End all actors and leave the cluster, if nobody else needs it."""
    for hand in hands:
        end(cluster, hand)
    if not shared:
        cluster.close()


def checked(message: Message) -> Message:
    """Raise what an actor has refused."""
    if message.name == REFUSED:
        raise error_of(message)
    return message


def why(wrong: BaseException) -> str:
    """Say in a line what happened to an actor."""
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    cause = getattr(wrong, "cause", None)
    if cause is not None:  # the program of an actor failed: its last line says how
        return lines[-1] if lines else repr(cause)
    return lines[0] if lines else repr(wrong)
