"""How saved games come back to a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from sparring.errors import StateError


def check_header(header: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """Refuse a state of another game, configuration or size."""
    for key, value in mine.items():
        found = header.get(key, 0 if key == "memory" else None)
        if found != value:
            raise StateError(f"the state has {key} {found}, this pool has {value}")


def put_body(body: bytes, arrays: Sequence[Tensor]) -> None:
    """Write the bytes of a state into the arrays of the games."""
    sizes = [array.numel() for array in arrays]
    if len(body) != sum(sizes):
        raise StateError("the state was saved by another build of the native core")
    flat = torch.frombuffer(bytearray(body), dtype=torch.uint8)
    for array, stretch in zip(arrays, torch.split(flat, sizes), strict=True):
        array.copy_(stretch.view_as(array))
