"""Collecting from actors: an update takes whichever rollouts are there, none of them too old.

Every actor has a lane, its stretch of games in the rollout of all games. A lane that is absent from
an update has rows that nobody decides, so that decisions which are open there simply stay open.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from sparring.cluster.actors.crew import Crew, Order, Parcel
from sparring.cluster.actors.packing import Gathered, counts_of
from sparring.cluster.actors.pool import DistributedPool
from sparring.config import CollectConfig, DistributedConfig
from sparring.games.stats import stat_metrics
from sparring.learn.acting import Actor
from sparring.learn.collect import Collector
from sparring.learn.learner import LostError, Timing
from sparring.pools.lineups import check_answered

WAIT_S = 1.0
"""Seconds after which a wait looks around; a signal is heard then."""
Publish = Callable[[int], None]
"""Shows the present weights to actors, under a version."""


@dataclass
class Pending:
    """An order that is not learned from yet."""

    order: Order
    version: int
    """The oldest weights that may play it; once it is there, those that did."""
    parcel: Parcel | None = None


@dataclass
class Lane:
    """An actor's stretch of games, and what it was asked for."""

    actor: int
    first_game: int
    games: int
    pending: deque[Pending] = field(default_factory=deque)
    dropped: set[Order] = field(default_factory=set)
    """Orders whose rollouts nobody wants any more."""
    number: int = 0
    """Of its next rollout."""
    taken: bool = False
    """Whether the present update has a rollout of it."""
    life: int = 0
    """Of the actor whose decisions are open."""


class DistributedCollector(Collector):
    """A collector whose games are played by a crew."""

    def __init__(
        self,
        pool: DistributedPool,
        config: CollectConfig,
        actor: Actor,
        columns: Sequence[str],
        phases: Timing,
        *,
        distributed: DistributedConfig,
        publish: Publish,
        opponents: int = 0,
        **options: Any,
    ) -> None:
        """Take over a crew.

        actor: never asked; actors answer rows where they play.
        opponents: slots of frozen networks, which actors have, too.
        """
        super().__init__(pool, config, actor, columns, phases, **options)
        self._opponents = opponents
        self.distributed_pool, self.crew, self._publish = pool, pool.crew, publish
        crew: Crew = self.crew
        games = config.games // crew.size
        self.lanes = [Lane(index, index * games, games) for index in range(crew.size)]
        self.lag = np.zeros(config.games, np.int32)
        """By game, updates that the weights which played the last rollout were behind."""
        self.lockstep = distributed.lockstep
        self.max_lag = 0 if distributed.lockstep else distributed.max_lag
        self._credits = 1 if distributed.lockstep else distributed.queue + 1
        wanted = distributed.actors_per_update or (crew.size + 1) // 2
        self._least = crew.size if distributed.lockstep else wanted
        self.version = 0
        """Of the newest weights."""
        self.lost = 0
        """Rollouts that died with their actors."""
        self.unfinished = 0
        """Games that were left out because they took too long."""
        self._given_up = False
        """Whether an actor is gone that is not started again."""
        self._cycle_began = time.perf_counter()

    @property
    def answered(self) -> set[int]:
        """The policies whose rows actors answer."""
        return {*self.actors, *range(1, self._opponents + 1)}

    # Weights

    def publish(self) -> None:
        """Let actors have the present weights; whoever may play on does."""
        self.version += 1
        self._publish(self.version)
        for lane in self.lanes:
            lane.taken = False
        if not self.lockstep:
            self._give_orders()

    # Rollouts

    def collect(self, number: int, *, reset_stats: bool = True) -> dict[str, float]:
        """Take a rollout of as many lanes as are there, and wait for those that must not age.

        number: of the update; in lock-step also of the rollout.
        """
        check_answered(self.pool.policies, self.answered)
        if not self.version:
            self.publish()
        self.pool.clear_counts()
        self.lag.fill(0)
        for lane in self.lanes:
            lane.taken = False
            lane.number = number if self.lockstep else max(lane.number, number)
        gather_rows, taken, waited = Gathered(self), [], 0.0
        self._give_orders()
        while True:
            with self.phases("stepping"):
                taken += self._take_ready(gather_rows)
            self._give_orders()
            if len(taken) >= self._least and not any(map(self._is_due, self.lanes)):
                break
            began = time.perf_counter()
            with self.phases("stepping"):
                self._wait(WAIT_S)
            waited += time.perf_counter() - began
        gather_rows.finish()
        counted = stat_metrics(self.pool.rules.stats, self.pool.counts().tolist())
        return self.finished.stats() | counted | self._figures(taken, waited)

    def _give_orders(self) -> None:
        """Have rollouts played that can be learned from before they are too old."""
        for lane in self.lanes:
            while len(lane.pending) + len(lane.dropped) < self._credits:
                ahead = len(lane.pending) + int(lane.taken)
                if ahead > self.max_lag:
                    break
                order = Order(lane.actor, lane.number)
                lane.number += not self.lockstep
                lane.pending.append(Pending(order, self.version))
                self.crew.give(order)

    def _is_due(self, lane: Lane) -> bool:
        """Whether a rollout would be too old if this update went without the lane."""
        behind = [self.version - one.version for one in lane.pending]
        return not lane.taken and any(
            ahead + lag > self.max_lag for ahead, lag in enumerate(behind, start=1)
        )

    def _wait(self, timeout_s: float) -> None:
        """Note what has come, and what never will."""
        with self._noting_loss():
            parcels = self.crew.take(timeout_s)
        for parcel in parcels:
            self._arrived(parcel)
        lost = self.crew.lost()
        self.lost += len({order.actor for order in lost})
        for order in lost:
            lane = self.lanes[order.actor]
            lane.dropped.discard(order)
            kept = [one for one in lane.pending if one.order != order or one.parcel is not None]
            lane.pending = deque(kept)
        if lost:
            self._give_orders()

    def _arrived(self, parcel: Parcel) -> None:
        lane = self.lanes[parcel.order.actor]
        if parcel.order in lane.dropped:
            lane.dropped.remove(parcel.order)
            self.crew.release(parcel)
            return
        first = next(at for at, one in enumerate(lane.pending) if one.order == parcel.order)
        lane.pending[first].parcel, lane.pending[first].version = parcel, parcel.version
        for later in list(lane.pending)[first + 1 :]:
            later.version = max(later.version, parcel.version)

    def _take_ready(self, gather_rows: Gathered) -> list[Parcel]:
        """Copy a rollout of every lane that has one and is not in this update yet."""
        self._wait(0.0)
        taken = []
        for lane in self.lanes:
            if lane.taken or not lane.pending or lane.pending[0].parcel is None:
                continue
            parcel = lane.pending.popleft().parcel
            assert parcel is not None
            self._unpack(lane, parcel, gather_rows)
            self.crew.release(parcel)
            taken.append(parcel)
        return taken

    def _unpack(self, lane: Lane, parcel: Parcel, gather_rows: Gathered) -> None:
        """Copy a rollout to its lane, and count it; this is the only place that does."""
        lane.taken = True
        self._meet(lane, parcel.life)
        arrays, counts = parcel.arrays, counts_of(parcel.arrays)
        gather_rows.add(arrays, lane.first_game, lane.games)
        self.decisions += counts["decisions"]
        self.opponent_rows += counts["opponent_rows"]
        self.unfinished += counts["unfinished"]
        self.distributed_pool.add_counts(arrays["counted"])
        self.distributed_pool.note(lane.actor, arrays["seated"], counts["heard"])
        behind = self.version - parcel.version
        self.lag[lane.first_game : lane.first_game + lane.games] = behind

    def _meet(self, lane: Lane, life: int) -> None:
        """Forget open decisions in games that are gone."""
        if lane.life != life:
            lane.life = life
            self._forget_open(lane)

    def _forget_open(self, lane: Lane) -> None:
        each = self.pool.rules.seats * self.transitions.chains
        self.transitions.pending["row"][lane.first_game * each :][: lane.games * each] = -1

    def _figures(self, taken: Sequence[Parcel], waited_s: float) -> dict[str, float]:
        """How actors and learner kept step, as curves show it."""
        now = time.perf_counter()
        cycle_s, self._cycle_began = now - self._cycle_began, now
        lags = [self.version - parcel.version for parcel in taken]
        idle_s = sum(parcel.idle_s for parcel in taken)
        busy_s = sum(parcel.played_s for parcel in taken)
        queued = [one for lane in self.lanes for one in lane.pending if one.parcel is not None]
        figures = {
            "lag_mean": sum(lags) / len(lags),
            "lag_max": max(lags),
            "actor_idle": idle_s / max(idle_s + busy_s, 1e-9),
            "learner_idle": min(waited_s / max(cycle_s, 1e-9), 1.0),
            "lanes": len(taken),
            "queued": len(queued),
            "restarts": self.crew.restarts,
            "lost": self.lost,
        }
        return {f"distributed/{name}": float(value) for name, value in figures.items()}

    def dry_run(self, number: int) -> None:
        """Not offered: rows are answered where they are played."""
        raise NotImplementedError

    # Saving

    @contextmanager
    def _noting_loss(self) -> Iterator[None]:
        """Remember that an actor is gone for good: its games cannot be saved any more."""
        try:
            yield
        except LostError:
            self._given_up = True
            raise

    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, bytes]]:
        """Return the rows of open decisions, and the games in flight if they can be saved."""
        if not self.exact or self._given_up:
            return self.pending_state()[0], {}
        with self._noting_loss():
            lives, games = self.distributed_pool.states()
        for lane, life in zip(self.lanes, lives, strict=True):
            self._meet(lane, life)
        rows, pending = self.pending_state()
        return rows, {"games.bin": games, "open.bin": pending}

    def load_state(self, rows: Any, blobs: Any, meta: Any) -> None:
        """Continue from `state`; what actors play for the weights before is not wanted any more."""
        for lane in self.lanes:
            for one in lane.pending:
                if one.parcel is not None:
                    self.crew.release(one.parcel)
                else:
                    lane.dropped.add(one.order)
            lane.pending.clear()
            self._forget_open(lane)
        super().load_state(rows, blobs, meta)
