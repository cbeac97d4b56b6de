"""Actors without processes: bodies that play in this one, and hand in what a script says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparring.cluster.actors.body import Body, Place
from sparring.cluster.actors.crew import Order, Parcel
from sparring.cluster.actors.learner import DistributedPPO, places_of
from sparring.config import TrainConfig
from sparring.learn.learner import Learner
from sparring.messages import Message
from sparring.processes import SharedArrays
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import merged, with_preset, written

TINY: dict[str, Any] = {
    "net": {"hidden": (16,)},
    "collect": {"games": 8, "steps": 8},
    "ppo": {"epochs": 1, "minibatch": 32, "lr": 1e-3, "entropy": 0.01},
    "eval": {"off": True},
    "tensorboard": False,
    "threads": 1,
    "device": "cpu",
}


def settings(game: str = "tic_tac_toe", **changes: Any) -> TrainConfig:
    base = merged(with_preset(game), TINY, "test")
    config: TrainConfig = merged(base, changes, "test")
    return config


def alone(config: TrainConfig) -> Learner:
    """The same run in one process, with a slot for every actor."""
    slots = replace(config.collect, groups=config.actors)
    one = replace(config, actors=0, collect=slots)
    return make_learner(one, resolve([one]))


def together(config: TrainConfig, **options: Any) -> DistributedPPO:
    """A run whose actors are bodies in this process."""
    return DistributedPPO(LocalCrew(config, **options), config.distributed, resolve([config]))


class LocalCrew:
    """Plays every order as soon as it is given, with the weights of that moment.

    deliver: of the actors with something to hand in, those that do when somebody asks.
    """

    restarts = 0

    def __init__(
        self,
        config: TrainConfig,
        deliver: Callable[[Sequence[int]], Sequence[int]] = lambda able: able,
    ) -> None:
        self.bodies = [Body(written(config), place) for place in places_of(config)]
        self.size, self.deliver = len(self.bodies), deliver
        self.config, self.version, self.flat = config, 0, np.zeros(0, np.uint8)
        self.done: list[deque[Parcel]] = [deque() for _ in self.bodies]
        self.out = [0] * self.size
        """Orders and parcels that every actor holds."""
        self.handed_in: list[Parcel] = []
        self.kept: dict[tuple[str, Any], Message] = {}
        self.dead: list[Order] = []

    def publish(self, version: int, weights: Any) -> None:
        self.version, self.flat = version, weights.copy()

    def give(self, order: Order) -> None:
        self.out[order.actor] += 1
        assert self.out[order.actor] <= self.config.distributed.queue + 1
        body = self.bodies[order.actor]
        arrays = SharedArrays(body.shapes).items()
        body.take_weights(self.flat)
        body.play(order.number, arrays)
        self.done[order.actor].append(
            Parcel(order, self.version, arrays, 1.0, 0.5, body.place.life)
        )

    def take(self, timeout_s: float) -> list[Parcel]:
        if not timeout_s:
            return []
        able = [actor for actor in range(self.size) if self.done[actor]]
        found = [self.done[actor].popleft() for actor in self.deliver(able)]
        self.handed_in += found
        return found

    def release(self, parcel: Parcel) -> None:
        self.out[parcel.order.actor] -= 1

    def lost(self) -> list[Order]:
        dead, self.dead = self.dead, []
        return dead

    def kill(self, actor: int) -> None:
        """What it holds is gone; another one begins games of its own."""
        self.dead += [parcel.order for parcel in self.done[actor]]
        self.out[actor] -= len(self.done[actor])
        self.done[actor].clear()
        place: Place = self.bodies[actor].place
        again = replace(place, life=place.life + 1)
        self.bodies[actor] = Body(written(self.config), again)
        for message in self.kept.values():
            self.bodies[actor].hear(Message.unpack(message.pack()))
        self.restarts += 1

    def tell(self, message: Message) -> None:
        self.kept[message.name, message.facts.get("key")] = message
        for body in self.bodies:
            body.hear(Message.unpack(message.pack()))

    def ask(self, message: Message, actor: int) -> Message:
        return self.bodies[actor].hear(message)

    def close(self) -> None:
        pass


def children() -> list[str]:
    """What the processes that this one has started are called."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
            if int(lines["PPid"]) == int(Path("/proc/self").resolve().name):
                found.append((status.parent / "cmdline").read_text().replace("\0", " "))
        except (OSError, KeyError, ValueError):
            continue  # it ended while we looked
    return found


def shared_memory() -> list[str]:
    """Memory without a name that this process still has mapped or open."""
    maps = [line for line in Path("/proc/self/maps").read_text().splitlines() if "memfd:" in line]
    links = []
    for fd in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(fd.readlink()))
        except OSError:
            continue
    return maps + [link for link in links if "memfd:sparring" in link]
