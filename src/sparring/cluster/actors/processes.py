"""Actors as processes of this machine: rollouts and weights in shared memory, words by sockets."""

from __future__ import annotations

import select
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.cluster.actors.board import Board
from sparring.cluster.actors.body import Place
from sparring.cluster.actors.crew import Order, Parcel
from sparring.cluster.actors.hand import Hand
from sparring.cluster.actors.standing import Standing
from sparring.cluster.messages import REFUSED, Message, error_of
from sparring.config import FleetConfig
from sparring.learn.learner import LostError

KILLS = ("signal SIGKILL", "signal SIGTERM")
"""Ends that somebody else brought about."""
LOOK_EVERY_S = 1.0
"""Seconds after which the clocks of actors are looked at, while one waits."""
CLOSE_S = 5.0
"""Seconds that all actors together may take to end by themselves."""


class ProcessCrew:
    """One process for every actor."""

    def __init__(
        self, settings: Mapping[str, Any], places: Sequence[Place], fleet: FleetConfig, size: int
    ) -> None:
        """Start them; they are ready some seconds later.

        settings: of the run, as its file has them. size: bytes of the network's weights.
        """
        self._fleet, self._board = fleet, Board(size)
        self._hands = [
            Hand(settings, place, self._board, fleet.queue + 1, fleet.limit_s) for place in places
        ]
        self._parcels: list[Parcel] = []
        self._buffers: dict[int, tuple[Hand, int, int]] = {}
        """Whose buffer every parcel lies in, by its identity: hand, life and number."""
        self._standing = Standing(fleet.most_restarts)
        self._answers: dict[int, Message] = {}
        self._asked = 0
        self._end = weakref.finalize(self, end_all, self._hands, self._board)
        for hand in self._hands:
            hand.start((), again=False)

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
        """Their processes."""
        return [hand.process.pid for hand in self._hands if hand.process]

    def publish(self, version: int, weights: npt.NDArray[np.uint8]) -> None:
        """Let rollouts that begin from now on be played with these weights."""
        self._board.write(version, weights)

    def give(self, order: Order) -> None:
        """Have a rollout played."""
        self._hands[order.actor].give(order)

    def take(self, timeout_s: float) -> Sequence[Parcel]:
        """Return parcels that have come, in that order; wait for one, so long at most."""
        until = time.monotonic() + timeout_s
        self._exchange(0.0)
        while not self._parcels and not self._standing.loses and time.monotonic() < until:
            self._exchange(min(until - time.monotonic(), LOOK_EVERY_S))
        parcels, self._parcels = self._parcels, []
        return parcels

    def release(self, parcel: Parcel) -> None:
        """Let the memory of a parcel be used again."""
        hand, life, buffer = self._buffers.pop(id(parcel))
        if hand.place.life == life:
            hand.free.append(buffer)

    def lost(self) -> Sequence[Order]:
        """Return orders that died with their actors since this was asked the last time."""
        return self._standing.lost()

    def tell(self, message: Message) -> None:
        """Say something to every actor, between its rollouts and in order."""
        self._standing.keep(message)
        for hand in self._hands:
            hand.tell(message)

    def ask(self, message: Message, actor: int) -> Message:
        """Ask an actor that has no orders, and wait for its answer."""
        hand = self._hands[actor]
        self._asked += 1
        asked = Message(message.name, {**message.facts, "asked": self._asked}, message.arrays)
        life = -1
        until = time.monotonic() + self._fleet.limit_s
        while self._asked not in self._answers:
            if hand.place.life != life:  # a new one has not heard the question
                life = hand.place.life
                hand.tell(asked)
                until = time.monotonic() + self._fleet.limit_s
            if hand.process is None:
                raise LostError(f"actor {actor} is gone, and not started again")
            self._exchange(LOOK_EVERY_S)
            if time.monotonic() > until:
                self._bury(hand, "hung")
        answer = self._answers.pop(self._asked)
        if answer.name == REFUSED:
            raise error_of(answer)
        return answer

    def close(self) -> None:
        """End all actors; nothing of them is left."""
        self._end()

    # Listening

    def _exchange(self, wait_s: float) -> None:
        """Take in what has come, notice who is gone or hangs, and start those again."""
        poll, by_fd = select.poll(), {}
        for hand in self._hands:
            for fd in (hand.socket.fileno(), hand.pidfd):
                if fd >= 0:
                    by_fd[fd] = hand
                    poll.register(fd, select.POLLIN)
        found = {id(by_fd[fd]): by_fd[fd] for fd, _ in poll.poll(max(wait_s, 0.0) * 1000)}
        for hand in found.values():
            if not self._listen(hand):
                self._bury(hand, "died")
        for hand in self._hands:
            hand.forget_words()
            if hand.hangs:
                self._bury(hand, "hung")

    def _listen(self, hand: Hand) -> bool:
        """Take in what an actor says; False when it has said everything it ever will."""
        alive = True
        readable = select.poll()
        readable.register(hand.socket, select.POLLIN)
        while alive and readable.poll(0):
            alive = hand.inbox.fill()
            for message in hand.inbox.messages():
                self._hear(hand, message)
        assert hand.process
        return alive and hand.process.poll() is None

    def _hear(self, hand: Hand, message: Message) -> None:
        facts = message.facts
        if message.name == "ready":
            hand.begin(message)
        elif message.name == "parcel":
            given = hand.given.popleft()
            hand.since = time.monotonic()
            self._standing.played(hand.place.index)
            parcel = Parcel(
                given.order,
                facts["version"],
                hand.memory[given.buffer].items(),
                facts["played_s"],
                facts["idle_s"],
                hand.place.life,
            )
            self._parcels.append(parcel)
            self._buffers[id(parcel)] = (hand, hand.place.life, given.buffer)
        elif "asked" in facts:
            self._answers[facts["asked"]] = message
        else:
            raise error_of(message)

    def _bury(self, hand: Hand, how: str) -> None:
        """Note what dies with an actor, and start it again."""
        words, ready = hand.last_words(), hand.ready
        ended = hand.bury()
        orders = [given.order for given in hand.given]
        hand.given.clear()
        place = hand.place
        self._standing.died(
            place.index,
            f"{how} ({ended})" if how == "died" else how,
            orders,
            words=words,
            ready=ready,
            life=place.life,
            killed=how == "died" and ended in KILLS,
        )
        hand.start(self._standing.kept, again=True)


def end_all(hands: Sequence[Hand], board: Board) -> None:
    """End processes: all are asked first, and then waited for, so long together at most."""
    for hand in hands:
        if hand.process is not None:
            hand.socket.close()
    until = time.monotonic() + CLOSE_S
    for hand in hands:
        hand.bury(max(until - time.monotonic(), 0.0))
    board.close()
