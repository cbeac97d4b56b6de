"""PPO whose games are played by actors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sparring.cluster.actors.collector import DistributedCollector
from sparring.cluster.actors.pool import DistributedPool
from sparring.cluster.actors.runner import ActorShare
from sparring.cluster.actors.supervisor import ActorSupervisor
from sparring.cluster.actors.weights import FlatWeights
from sparring.cluster.game_messages import check_equal_shares
from sparring.cluster.wrapper import PPOWrapper
from sparring.config import DistributedConfig, TrainConfig
from sparring.errors import ConfigError, SparringWarning
from sparring.learn.acting import check_slot
from sparring.learn.advantages import VTrace
from sparring.learn.algos import host_options
from sparring.learn.learner import Report, Snapshot
from sparring.learn.memory import chains_of, rollout_bytes
from sparring.learn.plan import Plan
from sparring.learn.ppo import PPO
from sparring.machine import check_memory_budget
from sparring.pools.custom.make import env_info
from sparring.training.planning.custom import by_factory


def actor_shares(config: TrainConfig) -> list[ActorShare]:
    games = config.collect.games // config.actors
    return [ActorShare(index, games, config.distributed.threads) for index in range(config.actors)]


def check_distributed(config: TrainConfig, plan: Plan) -> None:
    """Refuse numbers of actors that do not fit the run."""
    actors, games, distributed = config.actors, config.collect.games, config.distributed
    if not actors:
        raise ConfigError(
            f"cluster {config.cluster}: a single run does not use a cluster; add --actors or "
            "--replicas, or train several runs with --seeds or --vary"
        )
    check_equal_shares(config, f"actors {actors}", actors)
    vector = env_info(config.game).games if by_factory(config) else 0
    if vector not in (0, games // actors):
        raise ConfigError(
            f"actors {actors}: {config.game} makes a vector of {vector} envs, the games of one "
            f"actor; set collect.games {vector * actors}"
        )
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


class DistributedPPO(PPOWrapper):
    """PPO that learns from the rollouts of actors: another collector, and V-trace."""

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
        )
        make_collector = partial(
            DistributedCollector,
            distributed=distributed,
            publish=self._publish,
            opponents=self.slots,
        )
        options = {**host_options(plan), "slots": 0, "collector": make_collector}
        options["correction"] = self.correction = VTrace(distributed.rho_clip, distributed.c_clip)
        self.ppo = PPO(self.pool, plan.collect, plan.settings[0], plan.net, **options)
        assert isinstance(self.ppo.collector, DistributedCollector)
        self.collector = self.ppo.collector
        self._layout = FlatWeights(self.ppo.net)
        self._flat = np.zeros(self._layout.size, np.uint8)

    def _publish(self, version: int) -> None:
        self._layout.write(self.ppo.net, self._flat)
        self.supervisor.publish(version, self._flat)

    def iterate(self, progress: float) -> list[Report]:
        """Collect rollouts, learn from them, and publish the new weights."""
        before = self.collector.unfinished
        reports = self.ppo.iterate(progress)
        with self.phases("transfer"):
            self.collector.publish()
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
        """Go on from a snapshot; actors play with its weights from now on."""
        self.ppo.restore(snapshot)
        self.collector.publish()

    def close(self) -> None:
        self.supervisor.close()
