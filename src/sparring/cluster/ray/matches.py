"""Matches as Ray tasks, of an arena or an evaluation; the results are those of one process."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import torch

import sparring
from sparring.cluster.ray.host import Bytes, as_array
from sparring.cluster.ray.resources import ResourceRequest, check_fits
from sparring.cluster.ray.session import Cluster
from sparring.cluster.ray.tasks import (
    answer,
    archive,
    cpus_of_each,
    queue_line,
    results,
    unpack_archive,
)
from sparring.errors import SparringError
from sparring.games.flags import changed_flags, flags_as_options, read_rules
from sparring.games.rules import Rules
from sparring.league.intervals import Sprt, Verdict
from sparring.league.players import Player
from sparring.league.results import MatchRecord, MatchResult, summarize
from sparring.league.round_robin import RoundRobinSettings, play_pairing
from sparring.messages import Message, raise_if_error
from sparring.nets.policy import Policy
from sparring.search.budget import Budget
from sparring.store.policies import load_policy, save_policy

MATCH = "match"
MAX_RETRIES = 3
"""Retries of a match whose worker has died; a match is deterministic."""


def play_pairings(
    cluster: Cluster,
    rules: Rules,
    tables: Sequence[Sequence[Player]],
    settings: RoundRobinSettings,
    *,
    threads: int,
    same_deals: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[int, tuple[MatchResult, Verdict]]]:
    """Play pairings, one task each; yield the index and result of each as it ends.

    same_deals: all pairings get the deals of the first, as opponents of an evaluation do.
    tell: called with a line if matches have to wait.
    """
    request = ResourceRequest(cpus_of_each(cluster, len(tables), threads))
    typed = f"threads {threads}" if threads else "cluster"
    check_fits(cluster.machines, request, f"{typed}: a match")
    if line := queue_line(cluster, [request] * len(tables), "matches"):
        tell(line)
    settings = replace(settings, threads=request.cpus)
    match = cluster.ray.remote(work).options(**request.options, max_retries=MAX_RETRIES)
    sent: dict[int, Any] = {}
    tasks = {}
    for number, table in enumerate(tables):
        job, policies = match_job(rules, table, settings, 0 if same_deals else number)
        for policy in policies:
            if id(policy) not in sent:
                sent[id(policy)] = cluster.ray.put(packed_policy(policy))
        archives = [sent[id(policy)] for policy in policies]
        tasks[match.remote(as_array(job), *archives)] = number
    for number, result in results(cluster, tasks):
        if isinstance(result, SparringError):
            raise result
        yield number, read_match(rules, raise_if_error(result))


def match_job(
    rules: Rules, table: Sequence[Player], settings: RoundRobinSettings, number: int
) -> tuple[Message, list[Policy]]:
    """Return the job of one pairing, and the policies whose archives it needs.

    number: of the deals, see `play_pairing`.
    """
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


# In a Ray worker


def work(job: Bytes, *archives: Bytes) -> Bytes:
    return answer(play_one, job, archives)
