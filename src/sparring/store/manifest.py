"""The files of one checkpoint: safetensors and bytes, with a manifest that vouches for them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import torch as safetensors
from torch import Tensor

from sparring.config.ranges import shortened
from sparring.store.errors import CheckpointError
from sparring.store.files import read_regular, sync_folder, write_atomic, write_file
from sparring.store.folders import CHECKPOINTS, MANIFEST
from sparring.store.schema import (
    any_value,
    integer,
    list_of,
    mapping_of,
    object_with,
    parse_json,
    string_matching,
)
from sparring.store.tensors import unpack_tensors

FORMAT = 1
"""Version of the layout. A reader refuses every other one."""
MAX_MANIFEST_BYTES = 64 * 2**20
"""Bytes of the largest manifest that is read; a long league's has some hundred thousand."""
NET_GROUP = "net"
"""The group whose tensors must be finite."""
FILE_NAME_PATTERN = r"\w[\w.-]*"
"""A file of a checkpoint: no folders, nothing hidden."""

FILE_NAME = string_matching(FILE_NAME_PATTERN, "the name of a file without folders")
FILE_ENTRY = object_with(
    {"size": integer(), "sha256": string_matching(r"[0-9a-f]{64}", "a sha256")}
)
MANIFEST_SCHEMA = object_with(
    {
        "number": integer(),
        "groups": list_of(FILE_NAME),
        "blobs": list_of(FILE_NAME),
        "files": mapping_of(FILE_ENTRY, FILE_NAME),
        "meta": mapping_of(any_value),
    },
    {"segments": mapping_of(FILE_ENTRY)},
)

Tensors = Mapping[str, Mapping[str, Tensor]]
SegmentLoader = Callable[[], Mapping[str, Tensor]]
"""Gives the named tensors of a segment, see `store.segments`."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds, on the CPU. Nobody else has a reference to it."""

    tensors: dict[str, dict[str, Tensor]]
    blobs: dict[str, bytes]
    meta: dict[str, Any]
    number: int
    segments: Mapping[str, SegmentLoader] = field(default_factory=dict)
    """Stretches of what is remembered, which it shares with others; read when they are called."""

    @property
    def size(self) -> int:
        """Bytes on the disk, without headers and segments."""
        arrays = sum(t.nbytes for group in self.tensors.values() for t in group.values())
        return arrays + sum(map(len, self.blobs.values())) + len(json.dumps(self.meta))


def make_checkpoint(
    number: int,
    tensors: Tensors,
    blobs: Mapping[str, bytes],
    meta: Mapping[str, Any],
    segments: Mapping[str, SegmentLoader],
) -> Checkpoint:
    """Take over what is to be saved: tensors belong to the checkpoint, meta is copied."""
    if number < 0:
        raise CheckpointError(f"checkpoint number {number} must be 0 or more")
    names = [*map(group_file, tensors), *blobs]
    for name in names:
        if not re.fullmatch(FILE_NAME_PATTERN, name) or name == MANIFEST or names.count(name) > 1:
            raise CheckpointError(f"a checkpoint cannot hold a file called {name!r}; rename it")
    try:
        plain = json.loads(json.dumps(meta))
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"meta must hold plain values: {error}") from None
    groups = {group: to_contiguous_cpu(named) for group, named in tensors.items()}
    plain_blobs = {name: bytes(blob) for name, blob in blobs.items()}
    return Checkpoint(groups, plain_blobs, plain, number, segments)


def to_contiguous_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors as files have them: on the CPU, in one piece, each with memory of its own.

    Those that are so already, which a snapshot's are, are not copied.
    """
    plain: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, given in tensors.items():
        tensor = given.detach()
        if tensor.device.type == "cpu" and tensor.is_contiguous():
            memory = tensor.untyped_storage()
            if memory.nbytes() == tensor.nbytes and memory.data_ptr() not in seen:
                seen.add(memory.data_ptr())
                plain[name] = tensor
                continue
        plain[name] = tensor.to("cpu", copy=True, memory_format=torch.contiguous_format)
    return plain


def describe_nonfinite(checkpoint: Checkpoint) -> str:
    """Name the first tensor of the net with a number that is not one; "" if there is none."""
    for name, tensor in checkpoint.tensors.get(NET_GROUP, {}).items():
        if tensor.is_floating_point() and not (finite := tensor.float().isfinite()).all():
            return (
                f"{NET_GROUP} {name} holds {int((~finite).sum())} values that are NaN or infinite"
            )
    return ""


def write_files(
    folder: Path, checkpoint: Checkpoint, segments: Mapping[str, Mapping[str, Any]]
) -> None:
    """Make a folder with every file of a checkpoint; all of it is on the disk afterwards.

    segments: size and hash of those that it names, which are on the disk before.
    """
    folder.mkdir()
    files: dict[str, dict[str, Any]] = {}

    def add(name: str, data: bytes) -> None:
        write_file(folder / name, data)
        files[name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    for group, tensors in checkpoint.tensors.items():
        add(group_file(group), safetensors.save(tensors))
    for name, blob in checkpoint.blobs.items():
        add(name, blob)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "number": checkpoint.number,
        "groups": sorted(checkpoint.tensors),
        "blobs": sorted(checkpoint.blobs),
        "files": files,
        **({"segments": segments} if segments else {}),
        "meta": checkpoint.meta,
    }
    write_file(folder / MANIFEST, with_checksum(manifest))
    sync_folder(folder)


def amend(path: Path, changes: Mapping[str, Any]) -> None:
    """Replace some of what a checkpoint says in its meta; readers see the old one or the new."""
    manifest = read_manifest(path)
    meta = {**manifest["meta"], **json.loads(json.dumps(changes))}
    write_atomic(path / MANIFEST, with_checksum({**manifest, "meta": meta}))


def with_checksum(manifest: Mapping[str, Any]) -> bytes:
    """Return a manifest as it is written, with its own hash."""
    return json.dumps({**manifest, "sha256": digest(manifest)}, indent=1).encode()


def digest(manifest: Mapping[str, Any]) -> str:
    """Return the hash of a manifest without its own entry."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_verified_files(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read a checkpoint's manifest and files; every byte is checked, none is read beyond them."""
    manifest = read_manifest(path)
    files = {}
    for name, promised in manifest["files"].items():
        size = promised["size"]
        try:
            data = files[name] = read_regular(path / name, size, within=containment_root(path))
        except OSError as error:
            raise CheckpointError(
                f"{path}: {name} cannot be read ({error.strerror}); {suggest_older(path)}"
            ) from error
        if len(data) != size:
            raise CheckpointError(
                f"{path}: {name} has {len(data)} bytes instead of {size}; {suggest_older(path)}"
            )
        if hashlib.sha256(data).hexdigest() != promised["sha256"]:
            raise CheckpointError(
                f"{path}: {name} is damaged (sha256 differs); {suggest_older(path)}"
            )
    return manifest, files


def containment_root(path: Path) -> Path:
    """Return the folder that links of a checkpoint must not leave: its run's, else its own."""
    return path.absolute().parent.parent if is_in_run_folder(path) else path


def is_in_run_folder(path: Path) -> bool:
    """Whether a checkpoint lies among those of a run."""
    return path.absolute().parent.name == CHECKPOINTS


def read_manifest(path: Path) -> dict[str, Any]:
    """Read what a checkpoint says about itself, and check that it was not altered."""
    try:
        manifest = parse_json(
            read_regular(path / MANIFEST, MAX_MANIFEST_BYTES, within=containment_root(path))
        )
    except FileNotFoundError as error:
        what = f"has no {MANIFEST}" if path.is_dir() else "does not exist"
        raise CheckpointError(f"{path} {what}; {suggest_older(path)}") from error
    except OSError as error:
        raise CheckpointError(
            f"{path}: {MANIFEST}: {error.strerror}; {suggest_older(path)}"
        ) from error
    except ValueError as error:
        raise CheckpointError(f"{path}: {MANIFEST} is damaged; {suggest_older(path)}") from error
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise CheckpointError(f"{path}: {MANIFEST} is damaged; {suggest_older(path)}")
    if manifest["format"] != FORMAT:
        raise CheckpointError(
            f"{path} has format {shortened(manifest['format'])}, this sparring reads format "
            f"{FORMAT}; use the version that wrote it, or {suggest_older(path)}"
        )
    if manifest.get("sha256") != digest(manifest):
        raise CheckpointError(
            f"{path}: {MANIFEST} is damaged (sha256 differs); {suggest_older(path)}"
        )
    try:
        MANIFEST_SCHEMA(manifest, "")
        check_files_listed(manifest)
        if (
            is_in_run_folder(path)
            and path.name.isdecimal()
            and manifest["number"] != int(path.name)
        ):
            raise ValueError(f"it says that it is number {manifest['number']}")
    except ValueError as error:
        raise CheckpointError(f"{path}: {MANIFEST}: {error}; {suggest_older(path)}") from error
    return manifest


def check_files_listed(manifest: Mapping[str, Any]) -> None:
    """Demand that every group and blob of a manifest is among its files."""
    for name in (*map(group_file, manifest["groups"]), *manifest["blobs"]):
        if name not in manifest["files"]:
            raise ValueError(f"files.{name} is missing")


def group_file(group: str) -> str:
    return f"{group}.safetensors"


def unpack_checkpoint(
    path: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes]
) -> Checkpoint:
    """Return what the verified files of a checkpoint hold, without segments."""
    try:
        tensors = {group: unpack_tensors(files[group_file(group)]) for group in manifest["groups"]}
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}; {suggest_older(path)}") from error
    blobs = {name: files[name] for name in manifest["blobs"]}
    return Checkpoint(tensors, blobs, manifest["meta"], manifest["number"])


def checkpoint_numbers(folder: Path) -> list[int]:
    """Return the numbers of the checkpoints in a folder, the oldest first."""
    with suppress(OSError):
        named = [path for path in folder.iterdir() if re.fullmatch(r"\d{8,}", path.name)]
        return sorted(int(path.name) for path in named if (path / MANIFEST).is_file())
    return []


def suggest_older(path: Path) -> str:
    """Say which older checkpoint to take, and how."""
    there = [number for number in checkpoint_numbers(path.parent) if f"{number:08d}" != path.name]
    limit = int(path.name) if path.name.isdecimal() else None
    older = [number for number in there if limit is None or number < limit][-3:]
    run = path.absolute().parent.parent.name
    if older:
        listed = ", ".join(map(str, reversed(older)))
        return f"take an older one: {listed} (`sparring resume {run} --checkpoint {older[-1]}`)"
    if there:
        return f"there are only newer ones: {', '.join(map(str, there[:3]))}"
    return "there is no other one here; start again with `sparring train`"
