"""Factories of learners that share their work with actors or replicas."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sparring.cluster.actors.learner import DistributedLearner, actor_shares, check_distributed
from sparring.cluster.actors.processes import ProcessSupervisor
from sparring.cluster.actors.supervisor import ActorSupervisor
from sparring.cluster.actors.weights import FlatWeights
from sparring.cluster.replicas.devices import DeviceReplicas
from sparring.cluster.replicas.learner import (
    ReplicaHandle,
    ReplicaProcess,
    ReplicatedPPO,
    check_replicas,
)
from sparring.cluster.replicas.process_group import LOOPBACK
from sparring.cluster.replicas.replica import ReplicaShare
from sparring.config import TrainConfig
from sparring.learn.plan import Plan
from sparring.nets.heads import configured_heads
from sparring.nets.make import make_net
from sparring.training.planning.gpus import gpus_of, world_of_torchrun
from sparring.training.planning.settings import written


def with_actors(config: TrainConfig, plan: Plan) -> DistributedLearner:
    check_distributed(config, plan)
    supervisor = start_actors(config, plan)
    try:
        return DistributedLearner(supervisor, config.distributed, plan)
    except BaseException:
        supervisor.close()
        raise


def start_actors(config: TrainConfig, plan: Plan) -> ActorSupervisor:
    """Start the actors of a run, as processes of this machine or in a Ray cluster."""
    shares = actor_shares(config)
    if config.cluster:
        from sparring.cluster.ray.supervisor import start_ray_actors

        return start_ray_actors(config.cluster, written(config), shares, config.distributed)
    heads = configured_heads(plan.rules, plan.heads, plan.quantiles)
    net = make_net(
        plan.rules, plan.net, heads=heads, memory=plan.memory, roles=plan.role_nets or None
    )
    return ProcessSupervisor(written(config), shares, config.distributed, FlatWeights(net).size)


def with_replicas(config: TrainConfig, plan: Plan) -> ReplicatedPPO:
    check_replicas(config, plan)
    gpus = gpus_of(config)
    size = len(gpus) or config.replicas
    games, threads = config.collect.games // size, max(plan.threads // size, 1)
    shares = [
        ReplicaShare(rank, size, games, threads, plan.lr_factor, gpu)
        for rank, gpu in enumerate(gpus or [-1] * size)
    ]
    with contextlib.ExitStack() as cleanup:
        host, others = start_replicas(config, shares[1:], cleanup)
        timeout_s = config.distributed.timeout_s
        make = DeviceReplicas if gpus else ReplicatedPPO
        options: dict[str, Any] = {
            "timeout_s": timeout_s,
            "nccl": not config.distributed.shared_gpu,
        }
        learner = make(others, shares[0], plan, host=host, **options)
        learner.cleanup = cleanup.pop_all()
    return learner


def start_replicas(
    config: TrainConfig, shares: Sequence[ReplicaShare], cleanup: contextlib.ExitStack
) -> tuple[str, list[ReplicaHandle]]:
    """Start all replicas but the first; return the address of the first, and their handles.

    cleanup: ends them.
    """
    settings, timeout_s = written(config), config.distributed.timeout_s
    make: Callable[[ReplicaShare], ReplicaHandle]
    if world_of_torchrun():
        from sparring.cluster.replicas.torchrun import gather

        waiting = iter(gather(settings, shares, timeout_s))
        host, make = LOOPBACK, lambda _: next(waiting)
    elif not config.cluster:
        host = LOOPBACK
        make = partial(ReplicaProcess, settings, timeout_s=timeout_s)
    else:
        from sparring.cluster.ray.replicas import RayReplica
        from sparring.cluster.ray.resources import ResourceRequest
        from sparring.cluster.ray.session import LOCAL, connect

        threads = sum(share.threads for share in shares)
        cluster = connect(config.cluster, cpus=threads)
        cleanup.callback(cluster.close)
        each = ResourceRequest(max(share.threads for share in shares))
        why = f"replicas {config.replicas}, all but the first,"
        cluster.check_room(len(shares), each, why, "a replica")
        address = str(cluster.ray.util.get_node_ip_address())
        host = LOOPBACK if config.cluster == LOCAL else address
        make = partial(RayReplica, cluster, settings, timeout_s=timeout_s)
    others: list[ReplicaHandle] = []
    for share in shares:
        others.append(make(share))
        cleanup.callback(others[-1].end)
    return host, others
