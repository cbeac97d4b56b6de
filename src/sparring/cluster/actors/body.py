"""What an actor is, wherever it runs: games, a copy of the policy, and a collector."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from sparring.cluster import seats
from sparring.cluster.actors.episodes import WholeEpisodes
from sparring.cluster.actors.packing import Arrays, pack, shapes_of
from sparring.cluster.actors.weights import Flat, FlatWeights
from sparring.cluster.seats import part_of
from sparring.errors import SparringWarning, StateError
from sparring.games.seeds import derive_seed
from sparring.learn.algos import host_options
from sparring.learn.ppo import PPO
from sparring.learn.rollout import groups_of
from sparring.messages import Message
from sparring.nets.run.native import resolve_cpu_or_auto
from sparring.processes import Shapes
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import read_config

Newer = Callable[[int], tuple[int, Flat] | None]
"""Returns weights that are newer than a version, and theirs; None if there are none."""


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


class Body:
    """Plays its part of a run's games with the weights that it is given."""

    def __init__(self, settings: Mapping[str, Any], place: Place) -> None:
        """Make games and network.

        settings: of the run, as its file has them.
        """
        torch.set_num_threads(place.threads)
        config = read_config(settings, "the run's settings")
        config = part_of(config, place.games, place.threads)
        collect = replace(config.collect, groups=1, cpu=resolve_cpu_or_auto(config.collect.cpu))
        config = replace(config, collect=collect, device="cpu", pool="cpu", actors=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SparringWarning)  # the learner has said it already
            plan = resolve([config], first_game=place.first_game)
        # A whole learner: who plays, with which opponents, is then decided in one place. It never
        # learns; its optimizer has no memory until it does.
        options = host_options(plan)
        if config.distributed.whole_episodes:
            options["collector"] = partial(WholeEpisodes, seed=plan.seed)
        self._player = PPO(plan.host_pool(), plan.collect, plan.settings[0], plan.net, **options)
        self.place, self.pool, self._seed = place, self._player.pool, plan.seed
        self.collector = self._player.collector
        self._born = place.life == 0
        """Whether its games have begun."""
        self._heard = 0
        self.weights = FlatWeights(self._player.net)
        self._version, self._idle_since = 0, time.perf_counter()

    @property
    def shapes(self) -> Shapes:
        """What its rollouts take, packed."""
        return shapes_of(self.collector)

    def take_weights(self, flat: Flat) -> None:
        """Play with other weights from now on."""
        self.weights.read(self._player.net, flat)

    def fulfill(self, number: int, out: Arrays, newer: Newer) -> dict[str, Any]:
        """Play rollout `number` with the newest weights; return the facts of a parcel."""
        started = time.perf_counter()
        if (found := newer(self._version)) is not None:
            self._version, flat = found
            self.take_weights(flat)
        self.play(number, out)
        ended = time.perf_counter()
        idle_s, self._idle_since = started - self._idle_since, ended
        times = {"played_s": ended - started, "idle_s": idle_s}
        return {"number": number, "version": self._version, **times}

    def play(self, number: int, out: Arrays) -> None:
        """Play rollout `number` and pack it."""
        self._begin()
        collector = self.collector
        before = collector.decisions, collector.opponent_rows
        with self._player.forward.best_matmul():
            collector.collect(number)
        pack(
            collector,
            out,
            decisions=collector.decisions - before[0],
            opponent_rows=collector.opponent_rows - before[1],
            unfinished=getattr(collector, "unfinished", 0),
            heard=self._heard,
        )

    def _begin(self) -> None:
        """Begin the games of a later life or a resumed run, once it has heard everything."""
        if not self._born:
            self.pool.reset(seed=derive_seed(self._seed, self.place.life))
            self.collector.groups, self._born = groups_of(self.pool), True

    def hear(self, message: Message) -> Message:
        """Do what is said between rollouts; return an answer."""
        facts, pool = message.facts, self.pool
        self._heard = max(self._heard, int(facts.get("number", 0)))
        if seats.hear_games(pool, message):
            return Message("answer")
        if message.name == seats.BEGIN:
            self._seed, self._born = int(facts["seed"]), False
            if isinstance(self.collector, WholeEpisodes):
                self.collector.seed = self._seed
        elif message.name == seats.PUT:
            weights = seats.heard_weights(message.arrays)
            self._player.put(facts["key"], weights, greedy=facts["greedy"])
        elif message.name == seats.SEATED:
            self._begin()
            return Message("answer", arrays={"seated": pool.seated(facts["policies"])})
        elif message.name == seats.STATE:
            self._begin()
            games = np.frombuffer(pool.state(), np.uint8)
            return Message("answer", {"life": self.place.life}, {"games": games})
        elif message.name == seats.LOAD:
            pool.load_state(message.arrays["games"].tobytes())
            self.collector.groups, self._born = groups_of(pool), True
        else:
            raise StateError(f"an actor was told {message.name!r}, which it does not know")
        return Message("answer")
