"""Many pieces of work as tasks of Ray: each is placed where there are CPUs for it.

Runs and matches come back in any order; one that fails does not keep the others from it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparring.cluster.ray.host import as_array
from sparring.cluster.ray.jobs import (
    TRAIN,
    match_job,
    packed_policy,
    read_match,
    unpack_archive,
    work,
)
from sparring.cluster.ray.session import Cluster
from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.games.rules import Rules
from sparring.league.intervals import Verdict
from sparring.league.players import Player
from sparring.league.results import MatchResult
from sparring.league.round_robin import Settings
from sparring.messages import REFUSED, Message, error_of
from sparring.training.planning.settings import written

STOP_S = 30.0
"""Seconds that runs have to save themselves when they are stopped."""
AGAIN = 3
"""How often a match is played again whose worker has died: it always says the same."""


@dataclass(frozen=True)
class Done:
    """One of the runs, when it has ended."""

    number: int
    """Which of them, from 0."""
    facts: Mapping[str, Any]
    """What came of it; nothing if it failed."""
    wrong: SparringError | None = None
    """Why it failed."""


def demand_tasks(config: TrainConfig) -> None:
    """Refuse what runs in a cluster cannot do."""
    if config.population > 1:
        raise ConfigError(
            f"cluster {config.cluster}: a population of {config.population} is trained on one GPU; "
            "use --seeds, and --vary for settings"
        )


def share_of(cluster: Cluster, jobs: int, threads: int) -> int:
    """CPUs of every job: as many as were asked for, or an equal share."""
    cpus = threads or max(1, cluster.cpus // jobs)
    cluster.demand_cpus(cpus, f"threads {cpus}:")
    return cpus


def train_runs(cluster: Cluster, members: Sequence[TrainConfig]) -> Iterator[Done]:
    """Train and measure runs, each in a task; yield every one when it has ended.

    On this machine each writes its folder itself. On others it comes back when the run has ended.
    """
    cpus = share_of(cluster, len(members), members[0].threads)
    place = {"node": cluster.node, "folder": str(Path.cwd())}
    gpus = 1 if cluster.gpus else 0
    run = cluster.ray.remote(work).options(num_cpus=cpus, num_gpus=gpus, max_retries=0)
    tasks = {}
    for number, member in enumerate(members):
        settings = written(replace(member, threads=cpus, cluster=""))
        job = Message(TRAIN, {"settings": settings, **place})
        tasks[run.remote(as_array(job))] = number
    for number, answer in ended(cluster, tasks):
        if isinstance(answer, SparringError):
            yield Done(number, {}, answer)
            continue
        root = Path(members[number].runs)
        if "folder" in answer.arrays:
            unpack_archive(answer.arrays["folder"], root)
        yield Done(number, {**answer.facts, "run": str(root / answer.facts["run"])})


def play_pairings(
    cluster: Cluster,
    rules: Rules,
    tables: Sequence[Sequence[Player]],
    settings: Settings,
    threads: int,
) -> Iterator[tuple[int, tuple[MatchResult, Verdict]]]:
    """Play pairings, each in a task; yield the number of every one and what it says."""
    cpus = share_of(cluster, len(tables), threads)
    settings = replace(settings, threads=cpus)
    match = cluster.ray.remote(work).options(num_cpus=cpus, max_retries=AGAIN)
    sent: dict[int, Any] = {}
    tasks = {}
    for number, table in enumerate(tables):
        job, policies = match_job(rules, table, settings, number)
        for policy in policies:
            if id(policy) not in sent:
                sent[id(policy)] = cluster.ray.put(packed_policy(policy))
        archives = [sent[id(policy)] for policy in policies]
        tasks[match.remote(as_array(job), *archives)] = number
    for number, answer in ended(cluster, tasks):
        if isinstance(answer, SparringError):
            raise answer
        yield number, read_match(rules, answer)


def ended(
    cluster: Cluster, tasks: Mapping[Any, int]
) -> Iterator[tuple[int, Message | SparringError]]:
    """Yield tasks as they end: what came of each, or what is wrong.

    Whoever stops to ask stops the tasks: runs are saved.
    """
    ray, waiting = cluster.ray, list(tasks)
    try:
        while waiting:
            come, waiting = ray.wait(waiting, num_returns=1, timeout=1.0)
            for task in come:
                yield tasks[task], answer_of(ray, task)
    finally:
        for task in waiting:
            ray.cancel(task)  # to a run this is Ctrl-C
        until = time.monotonic() + STOP_S
        if waiting:
            ray.wait(waiting, num_returns=len(waiting), timeout=max(until - time.monotonic(), 0))


def answer_of(ray: Any, task: Any) -> Message | SparringError:
    """What came of a task."""
    try:
        answer = Message.unpack(ray.get(task).data)
    except ray.exceptions.RayError as wrong:
        lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
        cause = getattr(wrong, "cause", None)
        return SparringError(lines[-1] if cause is not None and lines else lines[0])
    return error_of(answer) if answer.name == REFUSED else answer
