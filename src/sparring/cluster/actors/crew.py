"""Actors as a learner sees them, wherever they are: they are given orders and hand in rollouts.

`processes` has them on this machine with shared memory, `ray.crew` anywhere.
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

from sparring.cluster.actors.body import Place
from sparring.errors import SparringError, SparringWarning
from sparring.learn.learner import LostError
from sparring.messages import Message

MAX_FAILED = 3
"""Starts in a row that come to nothing: an actor fails before it has handed in a rollout."""
START_S = 120.0
"""Seconds more than `distributed.timeout_s` that an actor may take until its games have begun."""
LOOK_S = 1.0
"""Seconds between two looks at who is late."""


@dataclass(frozen=True)
class Order:
    """A rollout that an actor is to play, with the newest weights that it finds."""

    actor: int
    number: int
    """Of the rollout: what the random numbers of its actions depend on."""


@dataclass(frozen=True)
class Parcel:
    """A rollout that was played."""

    order: Order
    version: int
    """Of the weights that played it."""
    arrays: Mapping[str, npt.NDArray[Any]]
    """As `packing` lays them out. Read before the parcel is released."""
    played_s: float
    """Seconds that playing took."""
    idle_s: float
    """Seconds that the actor had no order before it."""
    life: int = 0
    """Of the actor: how often it was started before. In another life it plays other games."""


@dataclass(frozen=True)
class Asked:
    """Something that an actor has not answered."""

    answer: Any
    """Where the answer will be: the buffer of a rollout, or Ray's reference."""
    order: Order | None = None
    """What is played, if anything is."""


class Hand:
    """Handle of one actor."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.asked: deque[Asked] = deque()
        """In the order in which they are answered."""
        self.since = 0.0
        """When it last did something."""
        self.ready = False

    def expect(self, answer: Any, order: Order | None = None) -> None:
        if not self.asked:
            self.since = time.monotonic()
        self.asked.append(Asked(answer, order))

    @property
    def orders(self) -> list[Order]:
        """What it has not handed in."""
        return [one.order for one in self.asked if one.order is not None]

    def late(self, timeout_s: float) -> bool:
        """Whether it should have done something for too long."""
        timeout_s += 0 if self.ready else START_S
        busy = bool(self.asked) or not self.ready
        return busy and time.monotonic() - self.since > timeout_s

    def parcel(self, order: Order, facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> Parcel:
        """Take in a rollout. facts: as `Body.fulfill` tells them."""
        self.since = time.monotonic()
        told = facts["version"], arrays, facts["played_s"], facts["idle_s"]
        return Parcel(order, *told, self.place.life)


class Crew:
    """All actors of a run, and the account of what was said, what was lost, and who died how often.

    An actor that dies is started again by whoever notices, told all it has to know, and its orders
    are gone: each is then in `lost`, never in a parcel.
    """

    def __init__(self, hands: Sequence[Any], max_restarts: int) -> None:
        """max_restarts: after so many deaths a run gives up."""
        self._hands, self._most = hands, max_restarts
        self.size = len(hands)
        self._kept: dict[tuple[str, Any], Message] = {}
        self._lost: list[Order] = []
        self._shown: set[str] = set()
        self._failed: dict[int, int] = {}
        self.restarts = 0
        """How often an actor was started again."""

    # What every kind of crew does in its own way

    def publish(self, version: int, weights: npt.NDArray[np.uint8]) -> None:
        """Let rollouts that begin from now on be played with these weights."""
        raise NotImplementedError

    def give(self, order: Order) -> None:
        """Have a rollout played; an actor plays its orders one after the other.

        An actor holds `distributed.queue` + 1 orders at most, parcels not yet released included.
        """
        raise NotImplementedError

    def release(self, parcel: Parcel) -> None:
        """Let the memory of a parcel be used again."""

    def ask(self, message: Message, actor: int) -> Message:
        """Ask an actor that has no orders, and wait for its answer."""
        raise NotImplementedError

    def close(self) -> None:
        """End all actors; nothing of them is left."""
        raise NotImplementedError

    def _look(self, wait_s: float) -> list[Parcel]:
        """Take in what has come; start anew whoever is dead or late. Wait for something."""
        raise NotImplementedError

    def _start(self, hand: Any) -> None:
        """Start an actor and tell it all it has to know."""
        raise NotImplementedError

    def _tell(self, message: Message) -> None:
        raise NotImplementedError

    # What all have in common

    def take(self, timeout_s: float) -> Sequence[Parcel]:
        """Return parcels that have come, in that order; wait for one or a loss, so long at most."""
        until = time.monotonic() + timeout_s
        while True:
            left = until - time.monotonic()
            found = self._look(min(max(left, 0.0), LOOK_S))
            if found or self._lost or left <= 0:
                return found

    def tell(self, message: Message) -> None:
        """Say something to every actor, between its rollouts and in order.

        It is said again to an actor that is started again; of messages with the same name and
        `facts["key"]` only the last.
        """
        self.keep(message)
        self._tell(message)

    def keep(self, message: Message) -> None:
        """Say it again to everybody who is started again, in the order of the last time."""
        name = (message.name, message.facts.get("key"))
        self._kept.pop(name, None)
        self._kept[name] = message

    @property
    def kept(self) -> list[Message]:
        """What an actor is told that is started again."""
        return list(self._kept.values())

    def lost(self) -> Sequence[Order]:
        """Return orders that died with their actors since this was asked the last time."""
        lost, self._lost = self._lost, []
        return lost

    def played(self, actor: int) -> None:
        """Note that an actor has handed in a rollout."""
        self._failed.pop(actor, None)

    def _again(self, hand: Any, how: str, words: str, *, killed: bool = False) -> None:
        """Start an actor anew that has been ended; what it had to play is lost."""
        place, orders, ready = hand.place, hand.orders, hand.ready
        hand.asked.clear()
        self.died(
            place.index, how, orders, words=words, ready=ready, life=place.life, killed=killed
        )
        hand.place, hand.ready = replace(place, life=place.life + 1), False
        self._start(hand)

    def died(
        self,
        actor: int,
        how: str,
        orders: Iterable[Order],
        *,
        words: str = "",
        ready: bool = True,
        life: int = 0,
        killed: bool = False,
    ) -> None:
        """Note what dies with an actor; raise an error if it is not to be started again.

        how: in words. words: its last ones. ready: its games had begun. life: how often it was
        started before. killed: by somebody, which says nothing of its next life; an environment
        that raises will again.
        """
        self._lost += orders
        self._failed[actor] = failed = self._failed.get(actor, 0) + (not killed)
        who, said = f"actor {actor} {how}", f"; its last words:\n{words}" if words else ""
        if not ready and life == 0 and not killed:
            raise SparringError(f"{who} before it was ready{said}")
        if failed >= MAX_FAILED:
            raise LostError(f"{who}, {failed} times in a row without a rollout{said}")
        self.restarts += 1
        if self.restarts > self._most:
            raise LostError(
                f"{who}, the {self.restarts}. time that one did; distributed.max_restarts is "
                f"{self._most}{said}"
            )
        if f"{how}{words}" not in self._shown:
            self._shown.add(f"{how}{words}")
            text = f"{who}; it is started again, its games begin anew{said}"
            warnings.warn(SparringWarning(text), stacklevel=5)
