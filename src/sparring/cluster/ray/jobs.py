"""Work that is done anywhere in a cluster, each piece by itself: a whole run, or a match.

A job is a message and so is what comes of it; no code travels in either.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from sparring.errors import SparringError, SparringWarning
from sparring.games.flags import as_typed, changed_flags, read_rules
from sparring.games.rules import Rules
from sparring.league.intervals import Sprt, Verdict
from sparring.league.players import Player
from sparring.league.results import MatchResult, Record, summarise
from sparring.league.round_robin import Settings, play_pairing
from sparring.messages import Message, refusal
from sparring.nets.policy import Policy
from sparring.store.policies import load_policy, save_policy
from sparring.training.agent import measure
from sparring.training.planning.settings import read_config
from sparring.training.train import train_with

Bytes = npt.NDArray[np.uint8]
TRAIN, MATCH = "train", "match"


def work(job: Bytes, *more: Bytes) -> Bytes:
    """Do a job in a worker of Ray; what it refuses is an answer too.

    more: archives that several jobs need; they were sent once.
    """
    message = Message.unpack(job.data)
    try:
        answer = WORK[message.name](message, more)
    except SparringError as wrong:
        answer = refusal(wrong)
    return np.frombuffer(answer.pack(), np.uint8)


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
    """A folder as an archive."""
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
    rules: Rules, table: Sequence[Player], settings: Settings, number: int
) -> tuple[Message, list[Policy]]:
    """Return the job of one pairing, and the policies whose archives it needs."""
    policies = list({id(one): one for one in table if not isinstance(one, str)}.values())
    places = {id(policy): place for place, policy in enumerate(policies)}
    facts = {
        "game": rules.name,
        "flags": as_typed(changed_flags(rules)),
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
    """Play one pairing."""
    facts = job.facts
    rules = read_rules(facts["game"], facts["flags"])
    given = dict(facts["settings"])
    if given["sprt"] is not None:
        given["sprt"] = Sprt(**given["sprt"])
    settings = Settings(**given)
    torch.set_num_threads(settings.threads)
    players = [
        opened_policy(raw, name, greedy, settings.threads)
        for raw, name, greedy in zip(packed, facts["names"], facts["greedy"], strict=True)
    ]
    table = [one if isinstance(one, str) else players[one] for one in facts["table"]]
    result, verdict = play_pairing(rules, table, settings, facts["number"], lambda _: None)
    record = {field.name: getattr(result.record, field.name) for field in fields(Record)}
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
    record = Record(**{name: array.copy() for name, array in done.arrays.items()})
    facts = done.facts
    result = summarise(rules, facts["names"], record, opening_plies=facts["opening_plies"])
    return result, facts["verdict"]


WORK: Mapping[str, Callable[[Message, Sequence[Bytes]], Message]] = {
    TRAIN: train_one,
    MATCH: play_one,
}
