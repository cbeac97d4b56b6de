"""Collects rollouts from actors: an update takes those that have arrived, none of them too old.

Every actor fills a slice of the games in the learner's rollout. The slice of an actor that is not
in an update has rows without a policy, so that its open decisions stay open.
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

from sparring.cluster.actors.packing import RolloutAssembler, counts_of
from sparring.cluster.actors.pool import DistributedPool
from sparring.cluster.actors.supervisor import ActorSupervisor, RolloutBatch, RolloutRequest
from sparring.config import CollectConfig, DistributedConfig
from sparring.games.stats import stat_metrics
from sparring.learn.acting import Actor
from sparring.learn.collect import Collector
from sparring.learn.learner import GAMES, PENDING, LostError
from sparring.learn.rollout import FinishedGames
from sparring.phases import Timing
from sparring.pools.lineups import check_answered

WAIT_S = 1.0
"""Longest single wait in seconds: signals are handled between waits."""
Publish = Callable[[int], None]
"""Sends the current weights to actors, under a version, and settings of the learner's actor."""


@dataclass
class Pending:
    """A request whose rollout has not been learned from."""

    request: RolloutRequest
    version: int
    """Oldest version of the weights that may play it; once it has arrived, the version that did."""
    batch: RolloutBatch | None = None


@dataclass
class ActorQueue:
    """Requests to one actor, and the slice of games that its rollouts fill."""

    actor: int
    first_game: int
    games: int
    pending: deque[Pending] = field(default_factory=deque)
    dropped: set[RolloutRequest] = field(default_factory=set)
    """Requests whose rollouts will be discarded."""
    number: int = 0
    """Number of its next rollout."""
    taken: bool = False
    """Whether the current update has a rollout of this actor."""
    incarnation: int = 0
    """Incarnation of the actor that the open decisions belong to."""


class DistributedCollector(Collector):
    """A collector whose games are played by actors."""

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
        """Collect from the actors of a pool's supervisor.

        actor: unused; actors compute actions where they play.
        opponents: slots of frozen networks, which actors have, too.
        """
        super().__init__(pool, config, actor, columns, phases, **options)
        self._opponents = opponents
        self.distributed_pool, self.supervisor, self._publish = pool, pool.supervisor, publish
        supervisor: ActorSupervisor = self.supervisor
        games = config.games // supervisor.size
        self.queues = [ActorQueue(index, index * games, games) for index in range(supervisor.size)]
        self.lag = np.zeros(config.games, np.int32)
        """By game, how many updates behind the weights were that played the last rollout."""
        self.lockstep = distributed.lockstep
        self.max_lag = 0 if distributed.lockstep else distributed.max_lag
        self._max_requests = 1 if distributed.lockstep else distributed.queue + 1
        wanted = distributed.actors_per_update or (supervisor.size + 1) // 2
        self._min_rollouts = supervisor.size if distributed.lockstep else wanted
        self.version = 0
        """Version of the newest weights."""
        self.lost = 0
        """Rollouts lost with their actors."""
        self.unfinished = 0
        """Games left out because they took longer than a rollout."""
        self._has_dead_actor = False
        """Whether an actor has ended and is not restarted."""
        self._cycle_began = time.perf_counter()

    @property
    def answered(self) -> set[int]:
        """Policies whose actions actors compute."""
        return {*self.actors, *range(1, self._opponents + 1)}

    # Weights

    def publish(self) -> None:
        """Send the current weights to actors, who play the next rollouts with them."""
        with self.phases("transfer"):
            self.version += 1
            self._publish(self.version)

    # Rollouts

    def collect(self, number: int, *, reset_stats: bool = True) -> dict[str, float]:
        """Assemble a rollout from the actors that are ready; wait for those that would get too old.

        number: counts the calls; in lockstep it is also that of the rollout.
        reset_stats: leave out games that finished in earlier rollouts.
        """
        check_answered(self.pool.policies, self.answered)
        self.publish()
        if reset_stats:
            self.finished = FinishedGames()
            self.pool.clear_counts()
            self.work = dict.fromkeys(self.work, 0.0)
        self.lag.fill(0)
        for queue in self.queues:
            queue.taken = False
            queue.number = number if self.lockstep else max(queue.number, number)
        assembler, taken, waited = RolloutAssembler(self), [], 0.0
        self._submit_requests()
        while True:
            with self.phases("stepping"):
                taken += self._take_ready(assembler)
            self._submit_requests()
            if len(taken) >= self._min_rollouts and not any(map(self._is_due, self.queues)):
                break
            began = time.perf_counter()
            with self.phases("stepping"):
                self._wait(WAIT_S)
            waited += time.perf_counter() - began
        assembler.finish()
        counted = stat_metrics(self.pool.rules.stats, self.pool.counts().tolist())
        return self.finished.stats() | counted | self.work | self._metrics(taken, waited)

    def _submit_requests(self) -> None:
        """Request rollouts that can be learned from before they are too old.

        An actor that still starts gets no request: the learner would wait for it before long.
        """
        for queue in filter(lambda each: self.supervisor.is_ready(each.actor), self.queues):
            while len(queue.pending) + len(queue.dropped) < self._max_requests:
                waiting = len(queue.pending) + int(queue.taken)
                if waiting > self.max_lag:
                    break
                request = RolloutRequest(queue.actor, queue.number)
                queue.number += not self.lockstep
                queue.pending.append(Pending(request, self.version))
                self.supervisor.submit(request)

    def _is_due(self, queue: ActorQueue) -> bool:
        """Whether a rollout would get too old if this update did not include the actor."""
        behind = [self.version - one.version for one in queue.pending]
        return not queue.taken and any(
            waiting + lag > self.max_lag for waiting, lag in enumerate(behind, start=1)
        )

    def _wait(self, timeout_s: float) -> None:
        """Receive rollouts, and forget requests that were lost."""
        with self._noting_loss():
            batches = self.supervisor.receive(timeout_s)
        for batch in batches:
            self._arrived(batch)
        lost = self.supervisor.pop_lost()
        self.lost += len({request.actor for request in lost})
        for request in lost:
            queue = self.queues[request.actor]
            queue.dropped.discard(request)
            kept = [one for one in queue.pending if one.request != request or one.batch is not None]
            queue.pending = deque(kept)
        if lost:
            self._submit_requests()

    def _arrived(self, batch: RolloutBatch) -> None:
        queue = self.queues[batch.request.actor]
        if batch.request in queue.dropped:
            queue.dropped.remove(batch.request)
            self.supervisor.release(batch)
            return
        first = next(i for i, one in enumerate(queue.pending) if one.request == batch.request)
        queue.pending[first].batch, queue.pending[first].version = batch, batch.version
        for later in list(queue.pending)[first + 1 :]:
            later.version = max(later.version, batch.version)

    def _take_ready(self, assembler: RolloutAssembler) -> list[RolloutBatch]:
        """Copy a rollout of every actor that has one and is not in this update yet."""
        self._wait(0.0)
        taken = []
        for queue in self.queues:
            if queue.taken or not queue.pending or queue.pending[0].batch is None:
                continue
            batch = queue.pending.popleft().batch
            assert batch is not None
            self._unpack(queue, batch, assembler)
            self.supervisor.release(batch)
            taken.append(batch)
        return taken

    def _unpack(self, queue: ActorQueue, batch: RolloutBatch, assembler: RolloutAssembler) -> None:
        """Copy a rollout into its slice of games and count it; nothing else counts rollouts."""
        queue.taken = True
        self._update_incarnation(queue, batch.incarnation)
        arrays, counts = batch.arrays, counts_of(batch.arrays)
        assembler.add(arrays, queue.first_game, queue.games)
        self.decisions += counts["decisions"]
        self.opponent_rows += counts["opponent_rows"]
        self.unfinished += counts["unfinished"]
        self.distributed_pool.add_counts(arrays["counted"])
        for name, count in zip(self.work, arrays["work"].tolist(), strict=True):
            self.work[name] += count
        self.distributed_pool.note(queue.actor, arrays["seated"], counts["last_message"])
        behind = self.version - batch.version
        self.lag[queue.first_game : queue.first_game + queue.games] = behind

    def _update_incarnation(self, queue: ActorQueue, incarnation: int) -> None:
        if queue.incarnation != incarnation:
            queue.incarnation = incarnation
            self._drop_open_decisions(queue)

    def _drop_open_decisions(self, queue: ActorQueue) -> None:
        each = self.pool.rules.seats * self.transitions.chains
        self.transitions.pending["row"][queue.first_game * each :][: queue.games * each] = -1

    def _metrics(self, taken: Sequence[RolloutBatch], waited_s: float) -> dict[str, float]:
        now = time.perf_counter()
        cycle_s, self._cycle_began = now - self._cycle_began, now
        lags = [self.version - batch.version for batch in taken]
        idle_s = sum(batch.idle_s for batch in taken)
        busy_s = sum(batch.played_s for batch in taken)
        queued = [one for queue in self.queues for one in queue.pending if one.batch is not None]
        metrics = {
            "lag_mean": sum(lags) / len(lags),
            "lag_max": max(lags),
            "actor_idle": idle_s / max(idle_s + busy_s, 1e-9),
            "learner_idle": min(waited_s / max(cycle_s, 1e-9), 1.0),
            "rollouts": len(taken),
            "queued": len(queued),
            "restarts": self.supervisor.restarts,
            "lost": self.lost,
        }
        return {f"distributed/{name}": float(value) for name, value in metrics.items()}

    def dry_run(self, number: int) -> None:
        """Not supported: actors compute actions in other processes."""
        raise NotImplementedError

    # Saving

    @contextmanager
    def _noting_loss(self) -> Iterator[None]:
        """Note that an actor is not restarted: its games can no longer be saved."""
        try:
            yield
        except LostError:
            self._has_dead_actor = True
            raise

    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, bytes]]:
        """Return the rows of open decisions, and the running games if they can be saved."""
        if not self.exact or self._has_dead_actor:
            return self.pending_state()[0], {}
        with self._noting_loss():
            incarnations, games = self.distributed_pool.states()
        for queue, incarnation in zip(self.queues, incarnations, strict=True):
            self._update_incarnation(queue, incarnation)
        rows, open_decisions = self.pending_state()
        return rows, {GAMES: games, PENDING: open_decisions}

    def load_state(self, rows: Any, blobs: Any, meta: Any) -> None:
        """Continue from `state`; rollouts of older weights are discarded."""
        for queue in self.queues:
            for one in queue.pending:
                if one.batch is not None:
                    self.supervisor.release(one.batch)
                else:
                    queue.dropped.add(one.request)
            queue.pending.clear()
            self._drop_open_decisions(queue)
        super().load_state(rows, blobs, meta)
