"""Loading of saved games into a GPU pool."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sparring import _native
from sparring.errors import StateError


def put_body(host: _native.Pool, body: bytes, arrays: Sequence[Tensor]) -> None:
    """Write the bytes of a state into tables, sides and memories of the games.

    host: the CPU pool that checks them before they are copied to the device.
    """
    sizes = [array.numel() for array in arrays]
    if len(body) != sum(sizes):
        raise StateError("the state was saved by another build of the native core")
    flat = torch.frombuffer(bytearray(body), dtype=torch.uint8)
    stretches = torch.split(flat, sizes)
    if wrong := host.check(stretches[0].numpy(), stretches[1].numpy()):
        raise StateError(f"these are no games that can be played on: {wrong}")
    for array, stretch in zip(arrays, stretches, strict=True):
        array.copy_(stretch.view_as(array))
