"""Actors without processes: runners that play in this one, and handle in what a script says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparring.cluster.actors.learner import DistributedLearner, actor_shares
from sparring.cluster.actors.runner import ActorRunner, ActorShare
from sparring.cluster.actors.supervisor import RolloutBatch, RolloutRequest
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


def together(config: TrainConfig, **options: Any) -> DistributedLearner:
    """A run whose actors are runners in this process."""
    supervisor = LocalSupervisor(config, **options)
    return DistributedLearner(supervisor, config.distributed, resolve([config]))


class LocalSupervisor:
    """Plays every request as soon as it is given, with the weights of that moment.

    deliver: of the actors with something to handle in, those that do when somebody asks.
    """

    restarts = 0

    def __init__(
        self,
        config: TrainConfig,
        deliver: Callable[[Sequence[int]], Sequence[int]] = lambda able: able,
    ) -> None:
        self.runners = [ActorRunner(written(config), share) for share in actor_shares(config)]
        self.size, self.deliver = len(self.runners), deliver
        self.config, self.version, self.flat = config, 0, np.zeros(0, np.uint8)
        self.done: list[deque[RolloutBatch]] = [deque() for _ in self.runners]
        self.out = [0] * self.size
        """Orders and batches that every actor holds."""
        self.handed_in: list[RolloutBatch] = []
        self.remembered: dict[tuple[str, Any], Message] = {}
        self.dead: list[RolloutRequest] = []

    def publish(self, version: int, weights: Any) -> None:
        self.version, self.flat = version, weights.copy()

    def submit(self, request: RolloutRequest) -> None:
        self.out[request.actor] += 1
        assert self.out[request.actor] <= self.config.distributed.queue + 1
        runner = self.runners[request.actor]
        arrays = SharedArrays(runner.shapes).items()
        runner.load_weights(self.flat)
        runner.play(request.number, arrays)
        self.done[request.actor].append(
            RolloutBatch(request, self.version, arrays, 1.0, 0.5, runner.share.incarnation)
        )

    def receive(self, timeout_s: float) -> list[RolloutBatch]:
        if not timeout_s:
            return []
        able = [actor for actor in range(self.size) if self.done[actor]]
        found = [self.done[actor].popleft() for actor in self.deliver(able)]
        self.handed_in += found
        return found

    def is_ready(self, actor: int) -> bool:
        return True

    def release(self, batch: RolloutBatch) -> None:
        self.out[batch.request.actor] -= 1

    def pop_lost(self) -> list[RolloutRequest]:
        dead, self.dead = self.dead, []
        return dead

    def kill(self, actor: int) -> None:
        """What it holds is gone; another one begins games of its own."""
        self.dead += [batch.request for batch in self.done[actor]]
        self.out[actor] -= len(self.done[actor])
        self.done[actor].clear()
        share: ActorShare = self.runners[actor].share
        again = replace(share, incarnation=share.incarnation + 1)
        self.runners[actor] = ActorRunner(written(self.config), again)
        for message in self.remembered.values():
            self.runners[actor].handle(Message.unpack(message.pack()))
        self.restarts += 1

    def broadcast(self, message: Message) -> None:
        self.remembered[message.name, message.payload.get("key")] = message
        for runner in self.runners:
            runner.handle(Message.unpack(message.pack()))

    def call(self, message: Message, actor: int) -> Message:
        return self.runners[actor].handle(message)

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
