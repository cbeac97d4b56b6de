"""Learners whose games are played by actors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sparring.cluster import game_messages
from sparring.cluster.actors.collector import DistributedCollector
from sparring.cluster.actors.pool import DistributedPool
from sparring.cluster.actors.runner import ActorShare
from sparring.cluster.actors.supervisor import ActorSupervisor
from sparring.cluster.actors.weights import FlatWeights
from sparring.cluster.game_messages import check_equal_shares
from sparring.cluster.wrapper import LearnerWrapper
from sparring.config import DistributedConfig, PPOConfig, TrainConfig
from sparring.errors import ConfigError, SparringWarning
from sparring.learn.acting import AdjustableActor, check_slot
from sparring.learn.advantages import VTrace
from sparring.learn.algos import host_learner
from sparring.learn.learner import Overrides, Report, Snapshot
from sparring.learn.memory import chains_of, rollout_bytes
from sparring.learn.plan import Plan
from sparring.machine import check_memory_budget
from sparring.messages import Message


def actor_shares(config: TrainConfig) -> list[ActorShare]:
    games = config.collect.games // config.actors
    return [ActorShare(index, games, config.distributed.threads) for index in range(config.actors)]


def check_distributed(config: TrainConfig, plan: Plan) -> None:
    """Refuse numbers of actors that do not fit the run."""
    actors, distributed = config.actors, config.distributed
    if not actors:
        raise ConfigError(
            f"cluster {config.cluster}: a single run does not use a cluster; add --actors or "
            "--replicas, or train several runs with --seeds or --vary"
        )
    check_equal_shares(config, f"actors {actors}", actors)
    if distributed.actors_per_update > actors:
        raise ConfigError(
            f"distributed.actors_per_update {distributed.actors_per_update} must be at "
            f"most actors, which is {actors}"
        )
    if not config.cluster:
        check_rollouts(config, plan)


def check_rollouts(config: TrainConfig, plan: Plan) -> None:
    """Refuse rollouts that do not fit into memory: the learner's, the actors', and those queued."""
    rules, steps, queue = plan.rules, config.collect.steps, config.distributed.queue
    row = rules.obs_bytes + plan.memory
    each = rollout_bytes(rules, row, steps, chains=chains_of(plan)) * (2 + queue + 1)
    what = f"rollouts of {steps} steps, {queue + 1} of every actor (distributed.queue),"
    check_memory_budget("collect.games", config.collect.games, each, what)


class DistributedLearner(LearnerWrapper):
    """A learner from the rollouts of actors: another collector and, for PPO, V-trace."""

    def __init__(
        self, supervisor: ActorSupervisor, distributed: DistributedConfig, plan: Plan
    ) -> None:
        """Use a supervisor whose actors play under the same plan."""
        self.supervisor, self._distributed = supervisor, distributed
        self.slots = plan.participants.slots
        self.pool = DistributedPool(
            supervisor,
            plan.rules,
            plan.collect.games,
            lineups=plan.participants.lineups,
            mixes=plan.participants.mixes,
            policies=self.slots + 1,
            memory=plan.memory,
            lockstep=distributed.lockstep,
            exact=distributed.lockstep and plan.custom is None,
            records=plan.hindsight.relabels,
            rewards=plan.rewards,
        )
        make_collector = partial(
            DistributedCollector,
            distributed=distributed,
            publish=self._publish,
            opponents=self.slots,
        )
        options: dict[str, Any] = {"slots": 0, "collector": make_collector}
        self.correction: VTrace | None = None
        if isinstance(plan.settings[0], PPOConfig):
            self.correction = VTrace(distributed.rho_clip, distributed.c_clip)
            options["correction"] = self.correction
        self.inner = host_learner(plan, self.pool, **options)
        assert isinstance(self.inner.collector, DistributedCollector)
        self.collector = self.inner.collector
        self._layout = FlatWeights(self.inner.net)
        self._flat = np.zeros(self._layout.size, np.uint8)
        self._acting: dict[str, bytes] = {}
        """Settings of the learner's actor, as they were sent last."""

    def _publish(self, version: int) -> None:
        self._layout.write(self.inner.net, self._flat)
        self.supervisor.publish(version, self._flat)
        actor = self.inner.playing.actor
        if not isinstance(actor, AdjustableActor):
            return
        settings = actor.settings()
        raw = {name: one.tobytes() for name, one in settings.items()}
        if raw != self._acting:
            self._acting = raw
            self.supervisor.broadcast(Message(game_messages.ACTING, {}, settings))

    def iterate(self, progress: float) -> list[Report]:
        """Collect rollouts, and learn from them."""
        before = self.collector.unfinished
        reports: list[Report] = self.inner.iterate(progress)
        if self.correction:
            reports[0].stats.update(self.correction.figures)
        dropped = self.collector.unfinished - before
        if self._distributed.whole_episodes:
            reports[0].stats["distributed/unfinished"] = float(dropped)
            if dropped and not before:
                text = (
                    f"{dropped} games took longer than collect.steps {self.collector.steps} and "
                    "were left out; raise it (distributed.whole_episodes learns from whole games)"
                )
                warnings.warn(SparringWarning(text), stacklevel=2)
        return reports

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        """Apply the changes of a phase, here and in the actors."""
        self.inner.apply_overrides(overrides)
        if overrides.settings is not None:
            self._acting = {}  # sent again, behind the settings that they belong to
            self.supervisor.broadcast(game_messages.settings_message(overrides.settings))

    def dry_run(self) -> list[Report]:
        """Not supported: it would not measure what actors do."""
        raise ConfigError("actors: an update cannot be rehearsed with actors; leave actors out")

    # Frozen opponents, which actors alone answer

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        check_slot(slot, self.slots)
        self.pool.put(slot, weights, greedy=greedy)

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        return self.pool.seated(self.slots + 1)

    # Saving

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        self.inner.restore(snapshot)

    def close(self) -> None:
        self.supervisor.close()
