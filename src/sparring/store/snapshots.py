"""Snapshots: the weights of a frozen network as a safetensors file, named by its hash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparring.store.errors import ArchiveError
from sparring.store.files import read_regular
from sparring.store.folders import LEAGUE
from sparring.store.schema import any_value, mapping_of, parse_json
from sparring.store.tensors import metadata_of, unpack_tensors

if TYPE_CHECKING:
    from torch import Tensor

POLICY = "policy"
"""Only metadata entry of a file: the order of several entries, and so the hash, may vary."""

MAX_BYTES = 64 * 2**30
"""Largest snapshot that is read."""

JSON_OBJECT = mapping_of(any_value)


def pack_snapshot(weights: Mapping[str, Tensor], policy: Mapping[str, Any]) -> bytes:
    """Serialize a network; equal weights give equal bytes.

    policy: metadata from `policy_meta`, which make the file loadable as a policy.
    """
    import torch
    from safetensors.torch import save

    copies: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not tensor.detach().float().isfinite().all():
            raise ArchiveError(f"no snapshot was saved: {name} holds numbers that are not finite")
        copies[name] = tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
    return save(copies, {POLICY: json.dumps(policy, sort_keys=True)})


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_snapshot(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the weights and metadata of a snapshot, verified by the hash in its name.

    The file of a run's snapshot must lie in the run's folder, symlinks resolved.
    """
    folder = path.absolute().parent
    root = folder.parent if folder.name == LEAGUE else None
    try:
        data = read_regular(path, MAX_BYTES, within=root)
    except OSError as error:
        raise ArchiveError(
            f"snapshot {path} cannot be read: {error.strerror or error}; take another one"
        ) from error
    if re.fullmatch(r"[0-9a-f]{64}", path.stem) and sha256_hex(data) != path.stem:
        raise ArchiveError(
            f"snapshot {path} is damaged: its hash differs from its name; take another one"
        )
    try:
        weights = unpack_tensors(data)
        policy = parse_json(metadata_of(data).get(POLICY, "{}"))
        JSON_OBJECT(policy, POLICY)
    except ValueError as error:
        raise ArchiveError(f"snapshot {path} cannot be used: {error}; take another one") from error
    return weights, policy
