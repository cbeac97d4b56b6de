"""Learners with processes that play for them, or learn as one with them, here or in a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial

from sparring.cluster.actors.crew import Crew
from sparring.cluster.actors.learner import DistributedPPO, check_distributed, places_of
from sparring.cluster.actors.processes import ProcessCrew
from sparring.cluster.actors.weights import FlatWeights
from sparring.cluster.replicas.learner import (
    Other,
    ReplicaProcess,
    ReplicatedPPO,
    check_replicas,
)
from sparring.cluster.replicas.process_group import LOOPBACK
from sparring.cluster.replicas.replica import Share
from sparring.config import TrainConfig
from sparring.learn.plan import Plan
from sparring.nets.make import make_net
from sparring.nets.net import configured_heads
from sparring.training.planning.settings import written


def with_actors(config: TrainConfig, plan: Plan) -> DistributedPPO:
    check_distributed(config, plan)
    crew = make_crew(config, plan)
    try:
        return DistributedPPO(crew, config.distributed, plan)
    except BaseException:
        crew.close()
        raise


def make_crew(config: TrainConfig, plan: Plan) -> Crew:
    """Start the actors of a run: processes of this machine, or anywhere in a cluster."""
    if config.cluster:
        from sparring.cluster.ray.crew import ray_crew

        return ray_crew(config.cluster, written(config), places_of(config), config.distributed)
    heads = configured_heads(plan.rules, plan.heads)
    net = make_net(plan.rules, plan.net, heads=heads, memory=plan.memory)
    places = places_of(config)
    return ProcessCrew(written(config), places, config.distributed, FlatWeights(net).size)


def with_replicas(config: TrainConfig, plan: Plan) -> ReplicatedPPO:
    check_replicas(config, plan)
    size = config.replicas
    games, threads = config.collect.games // size, max(plan.threads // size, 1)
    shares = [Share(rank, size, games, threads, plan.lr_factor) for rank in range(size)]
    with contextlib.ExitStack() as started:
        host, others = start_others(config, shares[1:], started)
        timeout_s = config.distributed.timeout_s
        learner = ReplicatedPPO(others, shares[0], plan, host=host, timeout_s=timeout_s)
        learner.ending = started.pop_all()
    return learner


def start_others(
    config: TrainConfig, shares: Sequence[Share], started: contextlib.ExitStack
) -> tuple[str, list[Other]]:
    """Start the other learners; return the address at which they find the first, and them.

    started: is told how they end.
    """
    settings, timeout_s = written(config), config.distributed.timeout_s
    make: Callable[[Share], Other]
    if not config.cluster:
        host = LOOPBACK
        make = partial(ReplicaProcess, settings, timeout_s=timeout_s)
    else:
        from sparring.cluster.ray.replicas import RayReplica
        from sparring.cluster.ray.session import LOCAL, connect

        threads = sum(share.threads for share in shares)
        cluster = connect(config.cluster, cpus=threads)
        started.callback(cluster.close)
        cluster.check_cpus(threads, f"replicas {config.replicas}: all but the first")
        here = str(cluster.ray.util.get_node_ip_address())
        host = LOOPBACK if config.cluster == LOCAL else here
        make = partial(RayReplica, cluster, settings, timeout_s=timeout_s)
    others: list[Other] = []
    for share in shares:
        others.append(make(share))
        started.callback(others[-1].end)
    return host, others
