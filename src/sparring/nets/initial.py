"""Orthogonal first weights that do not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch
from torch import Tensor, nn

_THREADS = Lock()
"""Two at once would take each other's single thread for the number to restore."""


def orthogonal_(weight: Tensor, gain: float = 1.0) -> Tensor:
    """Fill a matrix as `nn.init.orthogonal_` does on one thread.

    The QR decomposition splits its sums by threads, so that their number would show in the last
    bit of the weights, and after some updates in everything.
    """
    with one_thread():
        return nn.init.orthogonal_(weight, gain)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on a single thread."""
    with _THREADS:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
