"""Many pieces of work as tasks of Ray, each placed where there are CPUs for it: runs, or matches.

They come back in any order; one that fails does not keep the others from it. A job is a message and
so is what comes of it; no code travels in either.
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

from sparring.cluster.ray.crew import why
from sparring.cluster.ray.host import Bytes, as_array
from sparring.cluster.ray.session import Cluster
from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError, SparringWarning
from sparring.games.flags import changed_flags, flags_as_options, read_rules
from sparring.games.rules import Rules
from sparring.league.intervals import Sprt, Verdict
from sparring.league.players import Player
from sparring.league.results import MatchRecord, MatchResult, summarize
from sparring.league.round_robin import RoundRobinSettings, play_pairing
from sparring.messages import REFUSED, Message, error_of, refusal
from sparring.nets.policy import Policy
from sparring.store.policies import load_policy, save_policy
from sparring.training.agent import measure
from sparring.training.planning.settings import read_config, written
from sparring.training.train import train_with

TRAIN, MATCH = "train", "match"
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


def check_tasks(config: TrainConfig) -> None:
    """Refuse what runs in a cluster cannot do."""
    if config.population > 1:
        raise ConfigError(
            f"cluster {config.cluster}: a population of {config.population} is trained on one GPU; "
            "use --seeds, and --vary for settings"
        )


def share_of(cluster: Cluster, jobs: int, threads: int) -> int:
    """CPUs of every job: as many as were asked for, or an equal share."""
    cpus = threads or max(1, cluster.cpus // jobs)
    cluster.check_cpus(cpus, f"threads {cpus}:")
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
    settings: RoundRobinSettings,
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
    try:
        answer = Message.unpack(ray.get(task).data)
    except ray.exceptions.RayError as wrong:
        return SparringError(why(wrong))
    return error_of(answer) if answer.name == REFUSED else answer


# In a worker of Ray


def work(job: Bytes, *more: Bytes) -> Bytes:
    """Do a job in a worker of Ray; what it refuses is an answer too.

    more: archives that several jobs need; they were sent once.
    """
    message = Message.unpack(job.data)
    try:
        answer = WORK[message.name](message, more)
    except SparringError as wrong:
        answer = refusal(wrong)
    return as_array(answer)


# Runs


def train_one(job: Message, _: Sequence[Bytes]) -> Message:
    """Train and measure one run. Where its folder cannot be made, an archive of it comes back."""
    facts = job.facts
    member = read_config(facts["settings"], "the run's settings")
    here = here_is(facts["node"])
    if here:
        os.chdir(facts["folder"])
    with tempfile.TemporaryDirectory(prefix="sparring-run-") as folder:
        if not here:
            member = replace(member, runs=folder)
        told: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SparringWarning)
            agent = train_with(member, quiet=True)
            threads, stopped = member.threads or 1, agent.ended.startswith("SIG")
            results = {} if stopped else measure(agent, member.eval, threads=threads)
            told = [str(one.message) for one in caught if one.category is SparringWarning]
        done = {
            "run": agent.run.name,
            "ended": agent.ended,
            "unsaved": agent.unsaved,
            "decisions": agent.decisions,
            "minutes": agent.minutes,
            "results": {name: found.summary() for name, found in results.items()},
            "warnings": told,
        }
        return Message("done", done, {} if here else {"folder": archive(agent.run)})


def here_is(node: str) -> bool:
    """Whether a machine of a cluster is this one."""
    import ray

    return bool(ray.get_runtime_context().get_node_id() == node)


def archive(folder: Path) -> Bytes:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as tar:
        tar.add(folder, folder.name)
    return np.frombuffer(memory.getvalue(), np.uint8)


def unpack_archive(raw: Bytes, into: Path) -> None:
    """Write an archive's folder; nothing outside it can be touched."""
    into.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(raw.tobytes())) as tar:
        tar.extractall(into, filter="data")


# Matches


def match_job(
    rules: Rules, table: Sequence[Player], settings: RoundRobinSettings, number: int
) -> tuple[Message, list[Policy]]:
    """Return the job of one pairing, and the policies whose archives it needs."""
    policies = list({id(one): one for one in table if not isinstance(one, str)}.values())
    places = {id(policy): place for place, policy in enumerate(policies)}
    facts = {
        "game": rules.name,
        "flags": flags_as_options(changed_flags(rules)),
        "table": [one if isinstance(one, str) else places[id(one)] for one in table],
        "names": [policy.name for policy in policies],
        "greedy": [policy.greedy for policy in policies],
        "settings": asdict(settings),
        "number": number,
    }
    return Message(MATCH, facts), policies


def packed_policy(policy: Policy) -> Bytes:
    """A policy as an archive, equal to the last bit."""
    with tempfile.TemporaryDirectory(prefix="sparring-policy-") as folder:
        return archive(save_policy(policy, Path(folder) / "policy"))


def play_one(job: Message, packed: Sequence[Bytes]) -> Message:
    facts = job.facts
    rules = read_rules(facts["game"], facts["flags"])
    given = dict(facts["settings"])
    if given["sprt"] is not None:
        given["sprt"] = Sprt(**given["sprt"])
    settings = RoundRobinSettings(**given)
    torch.set_num_threads(settings.threads)
    players = [
        opened_policy(raw, name, greedy, settings.threads)
        for raw, name, greedy in zip(packed, facts["names"], facts["greedy"], strict=True)
    ]
    table = [one if isinstance(one, str) else players[one] for one in facts["table"]]
    result, verdict = play_pairing(rules, table, settings, facts["number"], lambda _: None)
    record = {field.name: getattr(result.record, field.name) for field in fields(MatchRecord)}
    names = [player.name for player in result.players]
    said = {"names": names, "opening_plies": result.opening_plies, "verdict": verdict}
    return Message("done", said, record)


def opened_policy(raw: Bytes, name: str, greedy: bool | None, threads: int) -> Policy:
    """Return a policy from its archive, under the name that results carry."""
    with tempfile.TemporaryDirectory(prefix="sparring-policy-") as folder:
        unpack_archive(raw, Path(folder))
        policy = load_policy(Path(folder) / "policy", threads=threads)
    policy.name, policy.greedy = name, greedy
    return policy


def read_match(rules: Rules, done: Message) -> tuple[MatchResult, Verdict]:
    """The result of a match from what came of its job."""
    record = MatchRecord(**{name: array.copy() for name, array in done.arrays.items()})
    facts = done.facts
    result = summarize(rules, facts["names"], record, opening_plies=facts["opening_plies"])
    return result, facts["verdict"]


WORK: Mapping[str, Callable[[Message, Sequence[Bytes]], Message]] = {
    TRAIN: train_one,
    MATCH: play_one,
}
