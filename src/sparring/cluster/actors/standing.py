"""What every crew keeps account of: what has been said, what was lost, and who died how often."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from sparring.cluster.actors.crew import Order
from sparring.cluster.messages import Message
from sparring.errors import SparringError, SparringWarning
from sparring.learn.learner import LostError

MOST_FAILED = 3
"""Starts in a row that come to nothing: an actor fails before it has handed in a rollout."""


class Standing:
    """The account of a crew."""

    def __init__(self, most_restarts: int) -> None:
        """most_restarts: after so many deaths a run gives up."""
        self._most = most_restarts
        self._kept: dict[tuple[str, Any], Message] = {}
        self._lost: list[Order] = []
        self._shown: set[str] = set()
        self._failed: dict[int, int] = {}
        self.restarts = 0
        """How often an actor was started again."""

    @property
    def kept(self) -> list[Message]:
        """What an actor is told that is started again."""
        return list(self._kept.values())

    def keep(self, message: Message) -> None:
        """Say it again to everybody who is started again, in the order of the last time."""
        name = (message.name, message.facts.get("key"))
        self._kept.pop(name, None)
        self._kept[name] = message

    @property
    def loses(self) -> bool:
        """Whether there are losses that nobody has asked for yet."""
        return bool(self._lost)

    def lost(self) -> Sequence[Order]:
        """Return orders that died with their actors since this was asked the last time."""
        lost, self._lost = self._lost, []
        return lost

    def played(self, actor: int) -> None:
        """Note that an actor has handed in a rollout."""
        self._failed.pop(actor, None)

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
        if failed >= MOST_FAILED:
            raise LostError(f"{who}, {failed} times in a row without a rollout{said}")
        self.restarts += 1
        if self.restarts > self._most:
            raise LostError(
                f"{who}, the {self.restarts}. time that one did; fleet.most_restarts is "
                f"{self._most}{said}"
            )
        if f"{how}{words}" not in self._shown:
            self._shown.add(f"{how}{words}")
            text = f"{who}; it is started again, its games begin anew{said}"
            warnings.warn(SparringWarning(text), stacklevel=5)
