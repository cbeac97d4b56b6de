"""PPO whose games are played by actors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sparring.cluster.actors.body import Place
from sparring.cluster.actors.collector import DistributedCollector
from sparring.cluster.actors.crew import Crew
from sparring.cluster.actors.pool import DistributedPool
from sparring.cluster.actors.weights import FlatWeights
from sparring.cluster.seats import check_equal_shares
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
from sparring.pools.custom.make import facts_of
from sparring.training.planning.custom import by_factory


def places_of(config: TrainConfig) -> list[Place]:
    games = config.collect.games // config.actors
    return [Place(index, games, config.distributed.threads) for index in range(config.actors)]


def check_distributed(config: TrainConfig, plan: Plan) -> None:
    """Refuse numbers of actors that do not fit."""
    actors, games, distributed = config.actors, config.collect.games, config.distributed
    if not actors:
        raise ConfigError(
            f"cluster {config.cluster}: one run alone has no use for it; add --actors or "
            "--replicas, or train several with --seeds or --vary"
        )
    check_equal_shares(config, "actors", actors)
    vector = facts_of(config.game).games if by_factory(config) else 0
    if vector not in (0, games // actors):
        raise ConfigError(
            f"actors {actors}: {config.game} makes a vector of {vector} envs, which are the games "
            f"of one actor; set collect.games {vector * actors}"
        )
    if distributed.actors_per_update > actors:
        raise ConfigError(
            f"distributed.actors_per_update {distributed.actors_per_update} must be at "
            f"most actors, which is {actors}"
        )
    if not config.cluster:
        check_rollouts(config, plan)


def check_rollouts(config: TrainConfig, plan: Plan) -> None:
    """Refuse rollouts that do not fit: the learner's, the actors' own, and those between them."""
    rules, steps, queue = plan.rules, config.collect.steps, config.distributed.queue
    row = rules.obs_bytes + plan.memory
    each = rollout_bytes(rules, row, steps, chains=chains_of(plan)) * (2 + queue + 1)
    what = f"rollouts of {steps} steps, {queue + 1} of every actor (distributed.queue),"
    check_memory_budget("collect.games", config.collect.games, each, what)


class DistributedPPO:
    """PPO that learns from what a crew of actors plays: another collector, and V-trace."""

    def __init__(self, crew: Crew, distributed: DistributedConfig, plan: Plan) -> None:
        """Take over a crew that plays under the same plan."""
        self.crew, self.slots, self._distributed = crew, plan.participants.slots, distributed
        self.pool = DistributedPool(
            crew,
            plan.rules,
            plan.collect.games,
            lineups=plan.participants.lineups,
            mixes=plan.participants.mixes,
            policies=self.slots + 1,
            memory=plan.memory,
            lockstep=distributed.lockstep,
            exact=distributed.lockstep and plan.custom is None,
        )
        gather = partial(
            DistributedCollector,
            distributed=distributed,
            publish=self._publish,
            opponents=self.slots,
        )
        options = {**host_options(plan), "slots": 0, "collector": gather}
        options["correction"] = self.correction = VTrace(distributed.rho_clip, distributed.c_clip)
        ppo = self.ppo = PPO(self.pool, plan.collect, plan.settings[0], plan.net, **options)
        assert isinstance(ppo.collector, DistributedCollector)
        self.collector = ppo.collector
        self.rules, self.net, self.forward = ppo.rules, ppo.net, ppo.forward
        self.phases, self.terms, self.exact = ppo.phases, ppo.terms, ppo.exact
        self.apply_overrides, self.set_mixes = ppo.apply_overrides, ppo.set_mixes
        self.policy, self.snapshot = ppo.policy, ppo.snapshot
        self._flat = FlatWeights(self.net)
        self._shown = np.zeros(self._flat.size, np.uint8)

    def _publish(self, version: int) -> None:
        self._flat.write(self.net, self._shown)
        self.crew.publish(version, self._shown)

    @property
    def updates(self) -> int:
        return self.ppo.updates

    def iterate(self, progress: float) -> list[Report]:
        """Take rollouts, learn from them, and let actors have what came of it."""
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
        """Not offered: what is measured here would not be what actors do."""
        raise ConfigError("actors: an update cannot be rehearsed without them; leave actors out")

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
        self.crew.close()
