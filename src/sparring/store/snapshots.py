"""One frozen network as one file: safetensors, named by the hash of its bytes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors
from torch import Tensor

from sparring.store.faults import ArchiveError

POLICY = "policy"
"""The one entry of a file's metadata; of several the order, and with it the hash, may differ."""


def packed(weights: Mapping[str, Tensor], policy: Mapping[str, Any]) -> bytes:
    """Return the file of a network: the same weights give the same bytes.

    policy: what `rules_of` and `make_net` need; so the file is a policy wherever it lies.
    """
    plain: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not tensor.detach().float().isfinite().all():
            raise ArchiveError(f"no snapshot was kept: {name} holds numbers that are not finite")
        copy = tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        plain[name] = copy
    return safetensors.save(plain, {POLICY: json.dumps(policy, sort_keys=True)})


def hash_of(data: bytes) -> str:
    """Return the name that a file's content gives it."""
    return hashlib.sha256(data).hexdigest()


def read_snapshot(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return weights and what a snapshot says about itself; every byte is checked by its name."""
    try:
        data = path.read_bytes()
    except OSError as wrong:
        raise ArchiveError(
            f"snapshot {path} cannot be read: {wrong.strerror or wrong}; take another one"
        ) from wrong
    if re.fullmatch(r"[0-9a-f]{64}", path.stem) and hash_of(data) != path.stem:
        raise ArchiveError(
            f"snapshot {path} is damaged: its content is not that of its name; take another one"
        )
    try:
        weights = safetensors.load(data)
        policy = json.loads(metadata_of(data).get(POLICY, "{}"))
    except (SafetensorError, ValueError) as wrong:
        raise ArchiveError(f"snapshot {path} is no safetensors file: {wrong}") from wrong
    return weights, policy


def metadata_of(data: bytes) -> dict[str, str]:
    """Return the texts in the head of a safetensors file."""
    head = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    texts: dict[str, str] = head.get("__metadata__") or {}
    return texts
