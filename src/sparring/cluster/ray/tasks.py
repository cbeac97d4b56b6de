"""Training runs and matches as Ray tasks, each placed where enough CPUs are free.

Tasks end in any order; one that fails does not stop the others. A job and its result are messages
and carry no code.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sparring
from sparring.cluster.ray.host import Bytes, as_array, check_version
from sparring.cluster.ray.session import Cluster
from sparring.cluster.ray.supervisor import describe
from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError, SparringWarning
from sparring.games.flags import changed_flags, flags_as_options, read_rules
from sparring.games.rules import Rules
from sparring.league.intervals import Sprt, Verdict
from sparring.league.players import Player
from sparring.league.results import MatchRecord, MatchResult, summarize
from sparring.league.round_robin import RoundRobinSettings, play_pairing
from sparring.messages import ERROR, Message, error_reply, to_exception
from sparring.nets.policy import Policy
from sparring.search.budget import Budget
from sparring.store.policies import load_policy, save_policy
from sparring.training.agent import measure
from sparring.training.planning.settings import read_config, written
from sparring.training.train import train_with

TRAIN, MATCH = "train", "match"
STOP_S = 30.0
"""Seconds that runs have to save themselves when they are stopped."""
MAX_RETRIES = 3
"""Retries of a match whose worker has died; a match is deterministic."""


@dataclass(frozen=True)
class FinishedRun:
    """A training run that has ended."""

    number: int
    """Index among the runs, from 0."""
    summary: Mapping[str, Any]
    """Its results; empty if it failed."""
    error: SparringError | None = None


def check_tasks(config: TrainConfig) -> None:
    """Refuse settings that runs in a cluster do not support."""
    if config.population > 1:
        raise ConfigError(
            f"cluster {config.cluster}: a population of {config.population} is trained on one GPU; "
            "use --seeds, and --vary for settings"
        )


def share_of(cluster: Cluster, jobs: int, threads: int) -> int:
    """CPUs of every job: the number asked for, or an equal share."""
    cpus = threads or max(1, cluster.cpus // jobs)
    cluster.check_cpus(cpus, f"threads {cpus}:")
    return cpus


def train_runs(cluster: Cluster, members: Sequence[TrainConfig]) -> Iterator[FinishedRun]:
    """Train and evaluate runs, one task each; yield them as they end.

    On this machine a run writes its folder itself. From other machines the folder is sent back.
    """
    cpus = share_of(cluster, len(members), members[0].threads)
    origin = {"node": cluster.node, "folder": str(Path.cwd())}
    gpus = 1 if cluster.gpus else 0
    run = cluster.ray.remote(work).options(num_cpus=cpus, num_gpus=gpus, max_retries=0)
    tasks = {}
    for number, member in enumerate(members):
        settings = written(replace(member, threads=cpus, cluster=""))
        job = Message(TRAIN, {"settings": settings, "version": sparring.__version__, **origin})
        tasks[run.remote(as_array(job))] = number
    for number, result in results(cluster, tasks):
        if isinstance(result, SparringError):
            yield FinishedRun(number, {}, result)
            continue
        root = Path(members[number].runs)
        if "folder" in result.arrays:
            unpack_archive(result.arrays["folder"], root)
        yield FinishedRun(number, {**result.payload, "run": str(root / result.payload["run"])})


def play_pairings(
    cluster: Cluster,
    rules: Rules,
    tables: Sequence[Sequence[Player]],
    settings: RoundRobinSettings,
    threads: int,
) -> Iterator[tuple[int, tuple[MatchResult, Verdict]]]:
    """Play pairings, one task each; yield the index and result of each as it ends."""
    cpus = share_of(cluster, len(tables), threads)
    settings = replace(settings, threads=cpus)
    match = cluster.ray.remote(work).options(num_cpus=cpus, max_retries=MAX_RETRIES)
    sent: dict[int, Any] = {}
    tasks = {}
    for number, table in enumerate(tables):
        job, policies = match_job(rules, table, settings, number)
        for policy in policies:
            if id(policy) not in sent:
                sent[id(policy)] = cluster.ray.put(packed_policy(policy))
        archives = [sent[id(policy)] for policy in policies]
        tasks[match.remote(as_array(job), *archives)] = number
    for number, result in results(cluster, tasks):
        if isinstance(result, SparringError):
            raise result
        yield number, read_match(rules, result)


def results(
    cluster: Cluster, tasks: Mapping[Any, int]
) -> Iterator[tuple[int, Message | SparringError]]:
    """Yield the index and the result or error of every task as it ends.

    A caller that stops iterating stops the tasks; runs are saved.
    """
    ray, waiting = cluster.ray, list(tasks)
    try:
        while waiting:
            ended, waiting = ray.wait(waiting, num_returns=1, timeout=1.0)
            for task in ended:
                yield tasks[task], result_of(ray, task)
    finally:
        for task in waiting:
            ray.cancel(task)  # a KeyboardInterrupt in the run
        until = time.monotonic() + STOP_S
        if waiting:
            ray.wait(waiting, num_returns=len(waiting), timeout=max(until - time.monotonic(), 0))


def result_of(ray: Any, task: Any) -> Message | SparringError:
    try:
        result = Message.unpack(ray.get(task).data)
    except ray.exceptions.RayError as wrong:
        return SparringError(describe(wrong))
    return to_exception(result) if result.name == ERROR else result


# In a Ray worker


def work(job: Bytes, *archives: Bytes) -> Bytes:
    """Do a job in a Ray worker; an error is a result, too.

    archives: of policies, which are sent once for several jobs.
    """
    message = Message.unpack(job.data)
    try:
        check_version(message.payload["version"])
        result = WORK[message.name](message, archives)
    except SparringError as wrong:
        result = error_reply(wrong)
    return as_array(result)


# Runs


def train_one(job: Message, _: Sequence[Bytes]) -> Message:
    """Train and evaluate one run; on another machine, return an archive of its folder."""
    values = job.payload
    member = read_config(values["settings"], "the run's settings")
    local = is_this_node(values["node"])
    if local:
        os.chdir(values["folder"])
    with tempfile.TemporaryDirectory(prefix="sparring-run-") as folder:
        if not local:
            member = replace(member, runs=folder)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SparringWarning)
            agent = train_with(member, quiet=True)
            threads, stopped = member.threads or 1, agent.ended.startswith("SIG")
            results = {} if stopped else measure(agent, member.eval, threads=threads)
            messages = [str(one.message) for one in caught if one.category is SparringWarning]
        summary = {
            "run": agent.run.name,
            "ended": agent.ended,
            "unsaved": agent.unsaved,
            "decisions": agent.decisions,
            "minutes": agent.minutes,
            "results": {name: result.summary() for name, result in results.items()},
            "warnings": messages,
        }
        return Message("done", summary, {} if local else {"folder": archive(agent.run)})


def is_this_node(node: str) -> bool:
    import ray

    return bool(ray.get_runtime_context().get_node_id() == node)


def archive(folder: Path) -> Bytes:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as tar:
        tar.add(folder, folder.name)
    return np.frombuffer(memory.getvalue(), np.uint8)


def unpack_archive(raw: Bytes, into: Path) -> None:
    """Extract an archive into a folder; paths outside of it are refused."""
    into.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(raw.tobytes())) as tar:
        tar.extractall(into, filter="data")


# Matches


def match_job(
    rules: Rules, table: Sequence[Player], settings: RoundRobinSettings, number: int
) -> tuple[Message, list[Policy]]:
    """Return the job of one pairing, and the policies whose archives it needs."""
    policies = list({id(one): one for one in table if not isinstance(one, str)}.values())
    indices = {id(policy): index for index, policy in enumerate(policies)}
    values = {
        "game": rules.name,
        "flags": flags_as_options(changed_flags(rules)),
        "table": [one if isinstance(one, str) else indices[id(one)] for one in table],
        "names": [policy.name for policy in policies],
        "styles": [
            [policy.greedy, str(policy.budget or ""), policy.temperature] for policy in policies
        ],
        "settings": asdict(settings),
        "number": number,
        "version": sparring.__version__,
    }
    return Message(MATCH, values), policies


def packed_policy(policy: Policy) -> Bytes:
    """A policy as an archive; loading it gives the same bits."""
    with tempfile.TemporaryDirectory(prefix="sparring-policy-") as folder:
        return archive(save_policy(policy, Path(folder) / "policy"))


def play_one(job: Message, packed: Sequence[Bytes]) -> Message:
    values = job.payload
    rules = read_rules(values["game"], values["flags"])
    given = dict(values["settings"])
    if given["sprt"] is not None:
        given["sprt"] = Sprt(**given["sprt"])
    settings = RoundRobinSettings(**given)
    torch.set_num_threads(settings.threads)
    players = [
        opened_policy(raw, name, style, settings.threads)
        for raw, name, style in zip(packed, values["names"], values["styles"], strict=True)
    ]
    table = [one if isinstance(one, str) else players[one] for one in values["table"]]
    result, verdict = play_pairing(rules, table, settings, values["number"], lambda _: None)
    record = {field.name: getattr(result.record, field.name) for field in fields(MatchRecord)}
    names = [player.name for player in result.players]
    summary = {"names": names, "opening_plies": result.opening_plies, "verdict": verdict}
    return Message("done", summary, record)


def opened_policy(raw: Bytes, name: str, style: Sequence[Any], threads: int) -> Policy:
    """Load a policy from its archive, under the name that results show, as it played there."""
    with tempfile.TemporaryDirectory(prefix="sparring-policy-") as folder:
        unpack_archive(raw, Path(folder))
        policy = load_policy(Path(folder) / "policy", threads=threads)
    policy.greedy, budget, policy.temperature = style
    policy.name, policy.budget = name, Budget.parse(budget) if budget else None
    return policy


def read_match(rules: Rules, done: Message) -> tuple[MatchResult, Verdict]:
    """Read the result of a match from the message of its task."""
    record = MatchRecord(**{name: array.copy() for name, array in done.arrays.items()})
    values = done.payload
    result = summarize(rules, values["names"], record, opening_plies=values["opening_plies"])
    return result, values["verdict"]


WORK: Mapping[str, Callable[[Message, Sequence[Bytes]], Message]] = {
    TRAIN: train_one,
    MATCH: play_one,
}
