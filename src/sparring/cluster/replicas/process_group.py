"""Process groups of replicas by torch.distributed: gloo on CPUs, NCCL on GPUs."""

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
"""Only processes of this machine can join."""
MEETING_S = 60.0
"""Seconds that replicas wait for each other to join."""


class TorchProcessGroup(ProcessGroup):
    """The process group of one replica. All replicas call the same sums in the same order."""

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        *,
        host: str = LOOPBACK,
        timeout_s: float = 300.0,
        device: str = "cpu",
        nccl: bool = True,
    ) -> None:
        """Join the others.

        store: of torch.distributed, the same for all replicas. host: address of this machine that
        the others can reach. timeout_s: how long a sum waits for the others. nccl: False sums
        tensors on a GPU on the host, where replicas share one.
        """
        self.rank, self.size, self._ended = rank, size, False
        gloo = dist.ProcessGroupGloo
        options = gloo._Options()
        options._devices = [gloo.create_device(hostname=host)]
        options._timeout = timedelta(seconds=timeout_s)
        with lost("another replica did not join"):
            self._group = gloo(dist.PrefixStore("cpu", store), rank, size, options)
        self._on_gpu: Any = None
        self.captures = nccl
        if nccl and device.startswith("cuda"):
            of_gpus = dist.ProcessGroupNCCL
            with lost("NCCL did not begin"):
                self._on_gpu = of_gpus(
                    dist.PrefixStore("gpu", store), rank, size, of_gpus.Options()
                )
                self.sum_(torch.zeros(1, device=device))  # makes its connections
                torch.cuda.synchronize()

    def sum_(self, flat: Tensor) -> None:
        """Sum a tensor in place over all replicas, the same bits in each."""
        on_host = flat.cpu() if flat.is_cuda and not self._on_gpu else flat
        group = self._on_gpu if on_host.is_cuda else self._group
        with lost("another replica has ended"):
            group.allreduce([on_host]).wait()
        if on_host is not flat:
            flat.copy_(on_host)

    def end_sums(self) -> None:
        """End sums on GPUs, also one that waits for a replica that has ended; see `check`."""
        self._ended = True
        if self._on_gpu is not None:
            self._on_gpu.abort()

    def check(self) -> None:
        if self._ended:
            raise LostError("another replica has ended")

    def totals(self, values: Sequence[float]) -> list[float]:
        """Return sums over all replicas."""
        flat = torch.tensor(values, dtype=torch.float64)
        self.sum_(flat)
        totals: list[float] = flat.tolist()
        return totals


@contextmanager
def lost(text: str) -> Iterator[None]:
    """Turn torch's error about a broken connection into a `LostError`."""
    try:
        yield
    except RuntimeError as wrong:
        first = next(iter(str(wrong).strip().splitlines()), type(wrong).__name__)
        raise LostError(f"{text}: {first}") from None


def open_store(host: str = LOOPBACK) -> tuple[Any, int]:
    """Open a store for joining in this process, at one address only; return it and its port."""
    try:
        listening = socket.create_server((host, 0))
    except OSError as wrong:
        raise ConfigError(f"replicas: {host} is not an address of this machine: {wrong}") from None
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
    """Connect to the store of another process."""
    with lost("the run's learner does not answer"):
        limit = timedelta(seconds=MEETING_S)
        return dist.TCPStore(host, port, is_master=False, timeout=limit, wait_for_workers=False)


def own_address(host: str, port: int) -> str:
    """Return the address of this machine that another machine sees."""
    with socket.create_connection((host, port), timeout=MEETING_S) as connection:
        address: str = connection.getsockname()[0]
    return address
