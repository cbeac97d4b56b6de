"""Learners of several processes that learn as one, by torch.distributed: gloo, on GPUs NCCL."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed
from torch import Tensor

from sparring.errors import ConfigError
from sparring.learn.learner import LostError
from sparring.learn.process_group import ProcessGroup

dist: Any = torch.distributed
"""Untyped."""
LOOPBACK = "127.0.0.1"
"""Nobody outside this machine can join."""
MEETING_S = 60.0
"""Seconds that learners wait for each other when they meet."""


class TorchProcessGroup(ProcessGroup):
    """One of several learners. All of them call the same sums in the same order."""

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        *,
        host: str = LOOPBACK,
        timeout_s: float = 300.0,
        device: str = "cpu",
    ) -> None:
        """Meet the others.

        store: where they find each other, of torch.distributed. host: the address of this machine
        that they reach it at. timeout_s: how long a sum waits for them.
        """
        self.rank, self.size = rank, size
        gloo = dist.ProcessGroupGloo
        options = gloo._Options()
        options._devices = [gloo.create_device(hostname=host)]
        options._timeout = timedelta(seconds=timeout_s)
        with lost("a learner that was to share the work did not come"):
            self._group = gloo(dist.PrefixStore("cpu", store), rank, size, options)
        self._on_gpu: Any = None
        if device.startswith("cuda"):
            nccl = dist.ProcessGroupNCCL
            self._on_gpu = nccl(dist.PrefixStore("gpu", store), rank, size, nccl.Options())

    def sum_(self, flat: Tensor) -> None:
        """Make a tensor the sum of all learners' tensors, the same bits in each."""
        group = self._on_gpu if flat.is_cuda else self._group
        with lost("a learner that shares the work is gone"):
            group.allreduce([flat]).wait()

    def totals(self, values: Sequence[float]) -> list[float]:
        """Return sums over all learners."""
        flat = torch.tensor(values, dtype=torch.float64)
        self.sum_(flat)
        found: list[float] = flat.tolist()
        return found


@contextmanager
def lost(text: str) -> Iterator[None]:
    """Turn what torch says when a connection breaks into an error of ours."""
    try:
        yield
    except RuntimeError as wrong:
        first = next(iter(str(wrong).strip().splitlines()), type(wrong).__name__)
        raise LostError(f"{text}: {first}") from None


def open_store(host: str = LOOPBACK) -> tuple[Any, int]:
    """Return a place to meet that this process keeps, and its port, open at one address only."""
    try:
        listening = socket.create_server((host, 0))
    except OSError as wrong:
        raise ConfigError(f"replicas: {host} is no address of this machine: {wrong}") from None
    port: int = listening.getsockname()[1]
    limit = timedelta(seconds=MEETING_S)
    store = dist.TCPStore(
        host,
        port,
        is_master=True,
        timeout=limit,
        wait_for_workers=False,
        master_listen_fd=listening.detach(),
    )
    return store, port


def find_store(host: str, port: int) -> Any:
    """Return the place to meet that another process keeps."""
    with lost("the learner of the run is not there"):
        limit = timedelta(seconds=MEETING_S)
        return dist.TCPStore(host, port, is_master=False, timeout=limit, wait_for_workers=False)


def own_address(host: str, port: int) -> str:
    """Return the address of this machine that another one sees when they talk."""
    with socket.create_connection((host, port), timeout=MEETING_S) as there:
        address: str = there.getsockname()[0]
    return address
