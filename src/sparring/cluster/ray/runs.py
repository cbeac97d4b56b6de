"""Training runs as Ray tasks; their folders come back from other machines."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sparring
from sparring.cluster.ray.host import Bytes, as_array
from sparring.cluster.ray.resources import ResourceRequest, check_fits
from sparring.cluster.ray.session import Cluster
from sparring.cluster.ray.tasks import (
    answer,
    archive,
    cpus_of_each,
    is_this_node,
    queue_line,
    results,
    unpack_archive,
)
from sparring.config import DistributedConfig, TrainConfig
from sparring.errors import ConfigError, SparringError, SparringWarning
from sparring.messages import ERROR, Message, error_reply, to_exception
from sparring.store.files import write_atomic
from sparring.store.folders import CONFIG
from sparring.training.agent import measure
from sparring.training.planning.settings import read_config, written
from sparring.training.train import train_with

TRAIN = "train"


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


def gpus_of_run(cluster: Cluster, member: TrainConfig) -> float:
    """Share of a GPU that a run asks for."""
    if ":" in member.device or member.devices:
        typed = f"devices {member.devices}" if member.devices else f"device {member.device}"
        raise ConfigError(
            f"{typed} and cluster {member.cluster} do not combine: Ray chooses the GPU of every "
            "run; use --device cuda"
        )
    share = member.distributed.gpus
    if member.device == "cpu" and share != DistributedConfig.gpus:
        raise ConfigError(
            f"distributed.gpus {share:g} and device cpu do not combine; leave one of them out"
        )
    wanted = member.device == "cuda" or (member.device == "auto" and cluster.gpus)
    return share if wanted else 0.0


def run_requests(cluster: Cluster, members: Sequence[TrainConfig]) -> list[ResourceRequest]:
    """CPUs and GPUs of every run; refuse a run that fits no machine."""
    gpus = [gpus_of_run(cluster, member) for member in members]
    at_once = len(members)
    if all(gpus):  # runs that wait for a GPU need no CPUs meanwhile
        at_once = min(at_once, max(int(cluster.gpus / max(gpus)), 1))
    found = [
        ResourceRequest(cpus_of_each(cluster, at_once, member.threads), share)
        for member, share in zip(members, gpus, strict=True)
    ]
    for request, member in zip(found, members, strict=True):
        typed = f"threads {member.threads}" if member.threads else f"cluster {member.cluster}"
        check_fits(cluster.machines, request, f"{typed}: a run")
    return found


def train_runs(
    cluster: Cluster,
    members: Sequence[TrainConfig],
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[FinishedRun]:
    """Train and evaluate runs, one task each; yield them as they end.

    On this machine a run writes its folder itself. From other machines the folder is sent back,
    also that of a run that failed or was stopped. tell: called with a line if runs have to wait.
    """
    origin = {"node": cluster.node, "folder": str(Path.cwd())}
    requests = run_requests(cluster, members)
    if line := queue_line(cluster, requests, "runs"):
        tell(line)
    run, tasks = cluster.ray.remote(work), {}
    for number, (member, request) in enumerate(zip(members, requests, strict=True)):
        usual = replace(member.distributed, gpus=DistributedConfig.gpus)
        alone = replace(member, threads=request.cpus, cluster="", distributed=usual)
        values = {"settings": written(alone), "version": sparring.__version__, **origin}
        task = run.options(**request.options, max_retries=0).remote(
            as_array(Message(TRAIN, values))
        )
        tasks[task] = number

    def bring_home(number: int, result: Message) -> Path:
        root = Path(members[number].runs)
        if "folder" in result.arrays:
            unpack_archive(result.arrays["folder"], root)
        return root / str(result.payload.get("run", ""))

    for number, result in results(cluster, tasks, bring_home):
        if isinstance(result, SparringError):
            yield FinishedRun(number, {}, result)
            continue
        where = bring_home(number, result)
        if result.name == ERROR:
            wrong = to_exception(result)
            kept = f"; what it wrote is in {where}" if "folder" in result.arrays else ""
            yield FinishedRun(number, {}, type(wrong)(f"{wrong}{kept}"))
            continue
        yield FinishedRun(number, {**result.payload, "run": str(where)})


# In a Ray worker


def work(job: Bytes) -> Bytes:
    return answer(train_one, job)


def train_one(job: Message, _: Sequence[Bytes]) -> Message:
    """Train and evaluate one run; on another machine, return an archive of its folder."""
    values = job.payload
    member = read_config(values["settings"], "the run's settings")
    local = is_this_node(values["node"])
    if local:
        os.chdir(values["folder"])
    with tempfile.TemporaryDirectory(prefix="sparring-run-") as folder:
        asked = member.runs
        if not local:
            member = replace(member, runs=folder)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SparringWarning)
            try:
                agent = train_with(member, quiet=True)
                threads, stopped = member.threads or 1, agent.ended.startswith("SIG")
                results = {} if stopped else measure(agent, member.eval, threads=threads)
            except SparringError as wrong:
                return failed_run(wrong, Path(folder), asked)
            messages = [str(one.message) for one in caught if one.category is SparringWarning]
        summary = {
            "run": agent.run.name,
            "ended": agent.ended,
            "unsaved": agent.unsaved,
            "decisions": agent.decisions,
            "minutes": agent.minutes,
            "results": {name: result.summary() for name, result in results.items()},
            "warnings": messages,
            "place": place_of_task(),
        }
        return Message("done", summary, {} if local else {"folder": packed_run(agent.run, asked)})


def packed_run(run: Path, asked: str) -> Bytes:
    """Archive a run whose settings name the folder that its user asked for."""
    file = run / CONFIG
    if file.is_file():
        text = file.read_text("utf-8")
        write_atomic(file, text.replace(json.dumps(str(run.parent)), json.dumps(asked)).encode())
    return archive(run)


def failed_run(wrong: SparringError, folder: Path, asked: str) -> Message:
    """Return an error with what the run has written in a folder, if anything."""
    reply = error_reply(wrong)
    runs = [one for one in folder.iterdir() if one.is_dir()]
    if not runs:
        return reply
    return Message(
        ERROR, {**reply.payload, "run": runs[0].name}, {"folder": packed_run(runs[0], asked)}
    )


def place_of_task() -> str:
    """The machine of a task, and the GPUs that Ray has given to it."""
    import ray

    gpus = ", ".join(f"GPU {number}" for number in ray.get_gpu_ids())
    return f"{socket.gethostname()}{f', {gpus}' if gpus else ''}"
