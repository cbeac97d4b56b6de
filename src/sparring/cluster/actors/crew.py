"""Actors as a learner sees them, wherever they are: they are given orders and hand in rollouts.

`processes` has them on this machine with shared memory, `ray.crew` anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sparring.cluster.messages import Message


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


class Crew(Protocol):
    """All actors of a run.

    An actor that dies is started again by whoever notices, told all it has to know, and its orders
    are gone: each is then in `lost`, never in a parcel.
    """

    @property
    def size(self) -> int:
        """How many actors there are."""

    @property
    def restarts(self) -> int:
        """How often one was started again."""

    def publish(self, version: int, weights: npt.NDArray[np.uint8]) -> None:
        """Let rollouts that begin from now on be played with these weights."""

    def give(self, order: Order) -> None:
        """Have a rollout played; an actor plays its orders one after the other.

        An actor holds `fleet.queue` + 1 orders at most, parcels not yet released included.
        """

    def take(self, timeout_s: float) -> Sequence[Parcel]:
        """Return parcels that have come, in that order; wait for one, so long at most."""

    def release(self, parcel: Parcel) -> None:
        """Let the memory of a parcel be used again."""

    def lost(self) -> Sequence[Order]:
        """Return orders that died with their actors since this was asked the last time."""

    def tell(self, message: Message) -> None:
        """Say something to every actor, between its rollouts and in order.

        It is said again to an actor that is started again; of messages with the same name and
        `facts["key"]` only the last.
        """

    def ask(self, message: Message, actor: int) -> Message:
        """Ask an actor that has no orders, and wait for its answer."""

    def close(self) -> None:
        """End all actors; nothing of them is left."""
