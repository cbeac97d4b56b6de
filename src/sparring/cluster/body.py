"""What an actor is, wherever it runs: games, a copy of the policy, and a collector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sparring.cluster.messages import Message
from sparring.cluster.packing import Arrays, pack, shapes_of
from sparring.cluster.weights import FlatWeights
from sparring.learn.algos import hosted
from sparring.learn.ppo import PPO
from sparring.processes import Shapes
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import read_config


@dataclass(frozen=True)
class Place:
    """Which part of a run an actor plays."""

    index: int
    games: int
    threads: int
    life: int = 0
    """How often this actor was started before; every life has games of its own."""

    @property
    def first_game(self) -> int:
        """Games of other actors that go before its own."""
        return self.index * self.games

    def plain(self) -> dict[str, int]:
        """As JSON has it."""
        return {
            "index": self.index,
            "games": self.games,
            "threads": self.threads,
            "life": self.life,
        }


class Body:
    """Plays its part of a run's games with the weights that it is given."""

    def __init__(self, settings: Mapping[str, Any], place: Place) -> None:
        """Make games and network.

        settings: of the run, as its file has them.
        """
        torch.set_num_threads(place.threads)
        config = read_config(settings, "the run's settings")
        config = replace(
            config,
            collect=replace(config.collect, games=place.games, slots=1),
            device="cpu",
            actors=0,
            cluster="",
            replicas=1,
            threads=place.threads,
        )
        plan = replace(resolve([config]), first_game=place.first_game)
        # A whole learner: who plays, with which opponents, is then decided in one place. It never
        # learns; its optimiser has no memory until it does.
        self._player = PPO(
            plan.host_pool(), plan.collect, plan.settings[0], plan.net, **hosted(plan)
        )
        self.place, self.pool = place, self._player.pool
        self.collector = self._player.collector
        if place.life:
            self.pool.reset(seed=life_seed(plan.seed, place.life))
        self.weights = FlatWeights(self._player.net)

    @property
    def shapes(self) -> Shapes:
        """What its rollouts take, packed."""
        return shapes_of(self.collector)

    def take_weights(self, flat: npt.NDArray[np.uint8]) -> None:
        """Play with other weights from now on."""
        self.weights.read(self._player.net, flat)

    def play(self, number: int, out: Arrays) -> None:
        """Play rollout `number` and pack it."""
        collector = self.collector
        before = collector.decisions, collector.opponent_rows
        with self._player.forward.best_matmul():
            collector.collect(number)
        pack(
            collector,
            out,
            decisions=collector.decisions - before[0],
            opponent_rows=collector.opponent_rows - before[1],
            counted=self.pool.counts(),
        )

    def hear(self, message: Message) -> Message:
        """Do what is said between rollouts; return an answer."""
        raise NotImplementedError(message.name)


def life_seed(seed: int, life: int) -> int:
    """Other games than in the life before."""
    mixed = np.random.SeedSequence([seed % 2**64, life]).generate_state(1, np.uint64)
    return int(mixed[0])
