"""The work of an actor, in a process or in Ray: games, a copy of the policy, and a collector."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from sparring.cluster import game_messages
from sparring.cluster.actors.episodes import WholeEpisodes
from sparring.cluster.actors.packing import Arrays, pack, packed_shapes
from sparring.cluster.actors.weights import Flat, FlatWeights
from sparring.cluster.game_messages import process_config
from sparring.errors import SparringWarning, StateError
from sparring.games.seeds import derive_seed
from sparring.learn.acting import AdjustableActor
from sparring.learn.algos import host_learner
from sparring.learn.collect import Collector
from sparring.learn.learner import Overrides
from sparring.learn.rollout import groups_of
from sparring.messages import Message
from sparring.nets.run.native import resolve_cpu_or_auto
from sparring.processes import Shapes
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import read_config

ReadNewer = Callable[[int], tuple[int, Flat] | None]
"""Returns a version and its weights if they are newer than a given version, otherwise None."""


@dataclass(frozen=True)
class ActorShare:
    """The part of a run's games that an actor plays."""

    index: int
    games: int
    threads: int
    incarnation: int = 0
    """How often this actor was started before; each incarnation plays other games."""

    @property
    def first_game(self) -> int:
        return self.index * self.games


class ActorRunner:
    """Plays a share of a run's games with the weights that the learner publishes."""

    def __init__(self, settings: Mapping[str, Any], share: ActorShare) -> None:
        """settings: of the run, as in its file."""
        torch.set_num_threads(share.threads)
        config = read_config(settings, "the run's settings")
        config = process_config(config, share.games, share.threads)
        collect = replace(config.collect, groups=1, cpu=resolve_cpu_or_auto(config.collect.cpu))
        config = replace(config, collect=collect, device="cpu", pool="cpu", actors=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SparringWarning)  # the learner has shown it already
            plan = resolve([config], first_game=share.first_game)
        # A complete learner, so that line-ups and opponents are set up in one place. It never
        # updates; its optimizer and its replay buffer use no memory until then.
        options: dict[str, Any] = {}
        if config.distributed.whole_episodes:
            options["collector"] = partial(WholeEpisodes, seed=plan.seed)
        self._player: Any = host_learner(plan, **options)
        self.share, self.pool, self._seed = share, self._player.pool, plan.seed
        self.collector: Collector = self._player.collector
        self._started = share.incarnation == 0
        """Whether its games have started."""
        self._last_message = 0
        self.weights = FlatWeights(self._player.net)
        self._version, self._idle_since = 0, time.perf_counter()

    @property
    def shapes(self) -> Shapes:
        """Shapes of its packed rollouts."""
        return packed_shapes(self.collector)

    def load_weights(self, flat: Flat) -> None:
        self.weights.read(self._player.net, flat)

    def play_request(self, number: int, out: Arrays, read_newer: ReadNewer) -> dict[str, Any]:
        """Play rollout `number` with the newest weights; return the payload of its message."""
        started = time.perf_counter()
        if (found := read_newer(self._version)) is not None:
            self._version, flat = found
            self.load_weights(flat)
        self.play(number, out)
        ended = time.perf_counter()
        idle_s, self._idle_since = started - self._idle_since, ended
        times = {"played_s": ended - started, "idle_s": idle_s}
        return {"number": number, "version": self._version, **times}

    def play(self, number: int, out: Arrays) -> None:
        """Play rollout `number` and pack it."""
        self._start_games()
        collector = self.collector
        before = collector.decisions, collector.opponent_rows
        with self._player.playing.best_matmul():
            collector.collect(number)
        pack(
            collector,
            out,
            decisions=collector.decisions - before[0],
            opponent_rows=collector.opponent_rows - before[1],
            unfinished=getattr(collector, "unfinished", 0),
            last_message=self._last_message,
        )

    def _start_games(self) -> None:
        """Start the games of a restarted actor or a resumed run, after all messages are applied."""
        if not self._started:
            self.pool.reset(seed=derive_seed(self._seed, self.share.incarnation))
            self.collector.groups, self._started = groups_of(self.pool), True

    def handle(self, message: Message) -> Message:
        """Apply a message between rollouts; return the reply."""
        payload, pool = message.payload, self.pool
        self._last_message = max(self._last_message, int(payload.get("number", 0)))
        if game_messages.apply_message(pool, message):
            return Message("reply")
        if message.name == game_messages.RESTART:
            self._seed, self._started = int(payload["seed"]), False
            if isinstance(self.collector, WholeEpisodes):
                self.collector.seed = self._seed
        elif message.name == game_messages.SETTINGS:
            self._player.apply_overrides(Overrides(settings=game_messages.read_settings(message)))
        elif message.name == game_messages.ACTING:
            assert isinstance(self._player.playing.actor, AdjustableActor)
            self._player.playing.actor.adjust(message.arrays)
        elif message.name == game_messages.PUT:
            weights = game_messages.read_weights(message.arrays)
            self._player.put(payload["key"], weights, greedy=payload["greedy"])
        elif message.name == game_messages.SEATED:
            self._start_games()
            return Message("reply", arrays={"seated": pool.seated(payload["policies"])})
        elif message.name == game_messages.STATE:
            self._start_games()
            games = np.frombuffer(pool.state(), np.uint8)
            return Message("reply", {"incarnation": self.share.incarnation}, {"games": games})
        elif message.name == game_messages.LOAD:
            pool.load_state(message.arrays["games"].tobytes())
            self.collector.groups, self._started = groups_of(pool), True
        else:
            raise StateError(f"an actor received an unknown message {message.name!r}")
        return Message("reply")
