"""Actors as processes of this machine: rollouts and weights in shared memory, words by sockets."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.cluster.actors.body import Place
from sparring.cluster.actors.crew import LOOK_S, Crew, Hand, Order, Parcel
from sparring.cluster.actors.weights import Board
from sparring.config import DistributedConfig
from sparring.learn.learner import LostError
from sparring.messages import Message, checked, error_of
from sparring.processes import CLOSE_S, Child, SharedArrays, ready

KILLS = ("signal SIGKILL", "signal SIGTERM")
"""Ends that somebody else brought about."""
LAST_WORDS = 2000
"""Characters of a dead actor's last words that are shown."""


class ProcessHand(Hand):
    """An actor's process, and the buffers that it plays rollouts into."""

    process: Child | None = None

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.free: list[int] = []
        """Buffers that nobody needs."""
        self.memory: list[SharedArrays] = []

    def tell(self, message: Message) -> None:
        """Say something, if there is anybody."""
        if self.process is not None:
            self.process.tell(message)

    def begin(self, process: Child, shapes: Mapping[str, Any]) -> None:
        """It is ready: take over its memory."""
        known = {name: (np.dtype(kind), tuple(shape)) for name, (kind, shape) in shapes.items()}
        self.memory = [SharedArrays(known, fd) for fd in process.channel.fds]
        process.channel.fds, self.ready = [], True
        self.since = time.monotonic()

    def bury(self, patience_s: float = 0.0) -> tuple[str, str]:
        """End the process and let go of everything; return how it ended, and its last words."""
        process, self.process = self.process, None
        if process is None:
            return "", ""
        process.end(patience_s)
        for memory in self.memory:
            memory.close()
        self.memory = []
        return process.ended, process.tail[-LAST_WORDS:].decode(errors="replace").strip()


class ProcessCrew(Crew):
    """One process for every actor."""

    _hands: Sequence[ProcessHand]

    def __init__(
        self,
        settings: Mapping[str, Any],
        places: Sequence[Place],
        distributed: DistributedConfig,
        size: int,
    ) -> None:
        """Start them; they are ready some seconds later.

        settings: of the run, as its file has them. size: bytes of the network's weights.
        """
        super().__init__([ProcessHand(place) for place in places], distributed.max_restarts)
        self._settings, self._distributed, self._board = settings, distributed, Board(size)
        self._parcels: list[Parcel] = []
        self._buffers: dict[int, tuple[ProcessHand, int, int]] = {}
        """Whose buffer every parcel lies in, by its identity: hand, life and number."""
        self._answers: dict[int, Message] = {}
        self._questions = 0
        self._end = weakref.finalize(self, end_all, self._hands, self._board)
        for hand in self._hands:
            self._start(hand)

    @property
    def pids(self) -> list[int]:
        return [hand.process.pid for hand in self._hands if hand.process]

    def publish(self, version: int, weights: npt.NDArray[np.uint8]) -> None:
        self._board.write(version, weights)

    def give(self, order: Order) -> None:
        hand = self._hands[order.actor]
        buffer = hand.free.pop()
        hand.expect(buffer, order)
        hand.tell(Message("order", {"number": order.number, "buffer": buffer}))

    def release(self, parcel: Parcel) -> None:
        hand, life, buffer = self._buffers.pop(id(parcel))
        if hand.place.life == life:
            hand.free.append(buffer)

    def ask(self, message: Message, actor: int) -> Message:
        hand = self._hands[actor]
        self._questions += 1
        asked = Message(message.name, {**message.facts, "asked": self._questions}, message.arrays)
        life = -1
        while self._questions not in self._answers:
            if hand.process is None:
                raise LostError(f"actor {actor} is gone, and not started again")
            if hand.place.life != life:  # a new one has not heard the question
                life = hand.place.life
                hand.expect(self._questions)
                hand.tell(asked)
            self._parcels += self._exchange(LOOK_S)
        return checked(self._answers.pop(self._questions))

    def close(self) -> None:
        self._end()

    def _tell(self, message: Message) -> None:
        for hand in self._hands:
            hand.tell(message)

    def _start(self, hand: ProcessHand) -> None:
        hand.free, board = list(range(self._distributed.queue + 1)), self._board
        hand.process = Child(
            "sparring.cluster.actors.actor", fds=[board.fd], threads=hand.place.threads
        )
        hand.since = time.monotonic()
        begin = {"settings": self._settings, "place": asdict(hand.place), "size": board.size}
        hand.tell(Message("begin", {**begin, "buffers": len(hand.free)}))
        for message in self.kept:
            hand.tell(message)

    # Listening

    def _look(self, wait_s: float) -> list[Parcel]:
        parcels, self._parcels = self._parcels, []
        return parcels + self._exchange(0.0 if parcels else wait_s)

    def _exchange(self, wait_s: float) -> list[Parcel]:
        """Take in what has come, notice who is gone or hangs, and start those again."""
        ready([hand.process for hand in self._hands if hand.process], wait_s)
        parcels: list[Parcel] = []
        for hand in self._hands:
            if hand.process is None:
                continue
            for message in hand.process.hear():
                parcels += self._hear(hand, message)
            hand.process.overhear()
            if hand.process.gone:
                self._bury(hand, "died")
            elif hand.late(self._distributed.timeout_s):
                self._bury(hand, "hung")
        return parcels

    def _hear(self, hand: ProcessHand, message: Message) -> list[Parcel]:
        facts = message.facts
        if message.name == "ready":
            assert hand.process
            hand.begin(hand.process, facts["shapes"])
        elif message.name == "parcel":
            given = hand.asked.popleft()
            self.played(hand.place.index)
            assert given.order
            parcel = hand.parcel(given.order, facts, hand.memory[given.answer].items())
            self._buffers[id(parcel)] = (hand, hand.place.life, given.answer)
            return [parcel]
        elif "asked" in facts:
            self._answers[hand.asked.popleft().answer] = message
            hand.since = time.monotonic()
        else:
            raise error_of(message)
        return []

    def _bury(self, hand: ProcessHand, how: str) -> None:
        """End an actor, and start it again."""
        ended, words = hand.bury()
        died = how == "died"
        told = f"{how} ({ended})" if died else how
        self._again(hand, told, words, killed=died and ended in KILLS)


def end_all(hands: Sequence[ProcessHand], board: Board) -> None:
    """End processes: all are asked first, and then waited for, so long together at most."""
    for hand in hands:
        if hand.process is not None:
            hand.process.channel.close()
    until = time.monotonic() + CLOSE_S
    for hand in hands:
        hand.bury(max(until - time.monotonic(), 0.0))
    board.close()
