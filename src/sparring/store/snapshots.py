"""One frozen network as one file: safetensors, named by the hash of its bytes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import torch as safetensors
from torch import Tensor

from sparring.store.errors import ArchiveError
from sparring.store.files import read_regular
from sparring.store.folders import LEAGUE
from sparring.store.schema import any_value, mapping_of, parse_json
from sparring.store.tensors import metadata_of, unpack_tensors

POLICY = "policy"
"""The one entry of a file's metadata; of several the order, and with it the hash, may differ."""

MAX_BYTES = 64 * 2**30
"""Of the largest snapshot that is read."""

JSON_OBJECT = mapping_of(any_value)


def pack_snapshot(weights: Mapping[str, Tensor], policy: Mapping[str, Any]) -> bytes:
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


def sha256_hex(data: bytes) -> str:
    """Return the name that a file's content gives it."""
    return hashlib.sha256(data).hexdigest()


def read_snapshot(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return weights and what a snapshot says about itself; every byte is checked by its name.

    One in the league of a run lies in the run's folder, links followed.
    """
    whole = path.absolute()
    home = whole.parent.parent if whole.parent.name == LEAGUE else None
    try:
        data = read_regular(path, MAX_BYTES, within=home)
    except OSError as error:
        raise ArchiveError(
            f"snapshot {path} cannot be read: {error.strerror or error}; take another one"
        ) from error
    if re.fullmatch(r"[0-9a-f]{64}", path.stem) and sha256_hex(data) != path.stem:
        raise ArchiveError(
            f"snapshot {path} is damaged: its content is not that of its name; take another one"
        )
    try:
        weights = unpack_tensors(data)
        policy = parse_json(metadata_of(data).get(POLICY, "{}"))
        JSON_OBJECT(policy, POLICY)
    except ValueError as error:
        raise ArchiveError(f"snapshot {path} cannot be used: {error}; take another one") from error
    return weights, policy
