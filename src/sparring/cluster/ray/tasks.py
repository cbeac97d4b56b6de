"""Work as tasks in a Ray cluster, each placed where enough CPUs and GPUs are free.

Tasks end in any order; one that fails does not stop the others. A job and its result are messages
and carry no code. `runs` trains and `matches` plays this way.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparring.cluster.ray.host import Bytes, as_array, check_version
from sparring.cluster.ray.resources import CPU, ResourceRequest
from sparring.cluster.ray.session import Cluster
from sparring.cluster.ray.supervisor import describe
from sparring.errors import SparringError
from sparring.messages import Message, error_reply

STOP_S = 30.0
"""Seconds that runs have to save themselves when they are stopped."""
Work = Callable[[Message, Sequence[Bytes]], Message]
"""Does a job in a Ray worker."""


def cpus_of_each(cluster: Cluster, jobs: int, threads: int) -> int:
    """CPUs of every job: the number asked for, or an equal share that one machine has."""
    largest = max((int(one.get(CPU, 0)) for one in cluster.machines), default=0)
    return threads or max(1, min(cluster.cpus // max(jobs, 1), largest))


def queue_line(cluster: Cluster, requests: Sequence[ResourceRequest], what: str) -> str:
    """Say in a line that some of the tasks have to wait; "" if all can begin."""
    each, total = max(requests, key=lambda one: (one.gpus, one.cpus)), len(requests)
    free = cluster.ray.available_resources()
    room = min(each.count(cluster.machines), each.count_on(free))
    if room >= total:
        return ""
    if room:
        return f"{total} {what} of {each} each: {room} at once, the others as soon as these end"
    return f"{cluster.waiting_line(each, f'{total} {what}')}; Ctrl-C ends"


def results(
    cluster: Cluster,
    tasks: Mapping[Any, int],
    bring_home: Callable[[int, Message], Any] = lambda *_: None,
) -> Iterator[tuple[int, Message | SparringError]]:
    """Yield the index and the result of every task as it ends; an error if its worker has died.

    A caller that stops iterating stops the tasks; runs are saved. bring_home: called with what
    stopped tasks still answer.
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
        if waiting:
            ended, _ = ray.wait(waiting, num_returns=len(waiting), timeout=STOP_S)
            for task in ended:
                if not isinstance(result := result_of(ray, task), SparringError):
                    bring_home(tasks[task], result)


def result_of(ray: Any, task: Any) -> Message | SparringError:
    try:
        return Message.unpack(ray.get(task).data)
    except ray.exceptions.RayError as wrong:
        return SparringError(describe(wrong))


def answer(work: Work, job: Bytes, archives: Sequence[Bytes] = ()) -> Bytes:
    """Do a job in a Ray worker; an error is a result, too.

    archives: of policies, which are sent once for several jobs.
    """
    message = Message.unpack(job.data)
    try:
        check_version(message.payload["version"])
        result = work(message, archives)
    except SparringError as wrong:
        result = error_reply(wrong)
    return as_array(result)


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
