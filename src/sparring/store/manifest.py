"""Files of one checkpoint, and its manifest with their sizes and hashes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

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

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
"""Version of the layout; readers refuse other versions."""
MAX_MANIFEST_BYTES = 64 * 2**20
"""Largest manifest that is read; that of a long league has some 100 kB."""
NET_GROUP = "net"
"""Group of the network's tensors, which must be finite."""
FILE_NAME_PATTERN = r"\w[\w.-]*"
"""Pattern of file names: no folders, no hidden files."""

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

Tensors: TypeAlias = "Mapping[str, Mapping[str, Tensor]]"
SegmentLoader: TypeAlias = "Callable[[], Mapping[str, Tensor]]"
"""Loads the tensors of a segment, see `store.segments`."""


@dataclass(frozen=True)
class Checkpoint:
    """Content of a checkpoint, on the CPU, referenced by no other object."""

    tensors: dict[str, dict[str, Tensor]]
    blobs: dict[str, bytes]
    meta: dict[str, Any]
    number: int
    segments: Mapping[str, SegmentLoader] = field(default_factory=dict)
    """Loaders of replay chunks that checkpoints share."""

    @property
    def size(self) -> int:
        """Approximate bytes on the disk, without segments."""
        arrays = sum(t.nbytes for group in self.tensors.values() for t in group.values())
        return arrays + sum(map(len, self.blobs.values())) + len(json.dumps(self.meta))


def make_checkpoint(
    number: int,
    tensors: Tensors,
    blobs: Mapping[str, bytes],
    meta: Mapping[str, Any],
    segments: Mapping[str, SegmentLoader],
) -> Checkpoint:
    """Validate names and metadata, and return the checkpoint; tensors are copied if needed."""
    if number < 0:
        raise CheckpointError(f"checkpoint number {number} must be 0 or more")
    names = [*map(group_file, tensors), *blobs]
    for name in names:
        if not re.fullmatch(FILE_NAME_PATTERN, name) or name == MANIFEST or names.count(name) > 1:
            raise CheckpointError(f"a checkpoint cannot hold a file named {name!r}; rename it")
    try:
        json_meta = json.loads(json.dumps(meta))
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"meta must hold JSON values: {error}") from None
    groups = {group: to_contiguous_cpu(named) for group, named in tensors.items()}
    copies = {name: bytes(blob) for name, blob in blobs.items()}
    return Checkpoint(groups, copies, json_meta, number, segments)


def to_contiguous_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return contiguous CPU tensors with separate storage, copied only where needed."""
    import torch

    result: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, given in tensors.items():
        tensor = given.detach()
        if tensor.device.type == "cpu" and tensor.is_contiguous():
            storage = tensor.untyped_storage()
            if storage.nbytes() == tensor.nbytes and storage.data_ptr() not in seen:
                seen.add(storage.data_ptr())
                result[name] = tensor
                continue
        result[name] = tensor.to("cpu", copy=True, memory_format=torch.contiguous_format)
    return result


def describe_nonfinite(checkpoint: Checkpoint) -> str:
    """Describe the first network tensor with NaN or infinite values; "" if all are finite."""
    for name, tensor in checkpoint.tensors.get(NET_GROUP, {}).items():
        if tensor.is_floating_point() and not (finite := tensor.float().isfinite()).all():
            return (
                f"{NET_GROUP} {name} holds {int((~finite).sum())} values that are NaN or infinite"
            )
    return ""


def write_files(
    folder: Path, checkpoint: Checkpoint, segments: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write all files of a checkpoint into a new folder, synced to the disk.

    segments: manifest entries of its segments, which are already written.
    """
    from safetensors.torch import save

    folder.mkdir()
    files: dict[str, dict[str, Any]] = {}

    def add(name: str, data: bytes) -> None:
        write_file(folder / name, data)
        files[name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    for group, tensors in checkpoint.tensors.items():
        add(group_file(group), save(tensors))
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
    """Change some metadata of a saved checkpoint atomically."""
    manifest = read_manifest(path)
    meta = {**manifest["meta"], **json.loads(json.dumps(changes))}
    write_atomic(path / MANIFEST, with_checksum({**manifest, "meta": meta}))


def with_checksum(manifest: Mapping[str, Any]) -> bytes:
    """Serialize a manifest with its hash."""
    return json.dumps({**manifest, "sha256": digest(manifest)}, indent=1).encode()


def digest(manifest: Mapping[str, Any]) -> str:
    """Return the hash of a manifest without its `sha256` entry."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_verified_files(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return manifest and files of a checkpoint; raises CheckpointError if one is damaged."""
    manifest = read_manifest(path)
    files = {}
    for name, entry in manifest["files"].items():
        size = entry["size"]
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
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise CheckpointError(
                f"{path}: {name} is damaged (sha256 differs); {suggest_older(path)}"
            )
    return manifest, files


def containment_root(path: Path) -> Path:
    """Return the folder that symlinks of a checkpoint must not leave: its run, or itself."""
    return path.absolute().parent.parent if is_in_run_folder(path) else path


def is_in_run_folder(path: Path) -> bool:
    """Whether a checkpoint lies in the folder of a run."""
    return path.absolute().parent.name == CHECKPOINTS


def read_manifest(path: Path) -> dict[str, Any]:
    """Read and verify the manifest of a checkpoint."""
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
            raise ValueError(f"its number is {manifest['number']}, unlike its folder")
    except ValueError as error:
        raise CheckpointError(f"{path}: {MANIFEST}: {error}; {suggest_older(path)}") from error
    return manifest


def check_files_listed(manifest: Mapping[str, Any]) -> None:
    for name in (*map(group_file, manifest["groups"]), *manifest["blobs"]):
        if name not in manifest["files"]:
            raise ValueError(f"files.{name} is missing")


def group_file(group: str) -> str:
    return f"{group}.safetensors"


def unpack_checkpoint(
    path: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes]
) -> Checkpoint:
    """Return a checkpoint from verified files, without segments."""
    try:
        tensors = {group: unpack_tensors(files[group_file(group)]) for group in manifest["groups"]}
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}; {suggest_older(path)}") from error
    blobs = {name: files[name] for name in manifest["blobs"]}
    return Checkpoint(tensors, blobs, manifest["meta"], manifest["number"])


def checkpoint_numbers(folder: Path) -> list[int]:
    """Return the numbers of the checkpoints in a folder, the oldest first."""
    with suppress(OSError):
        folders = [path for path in folder.iterdir() if re.fullmatch(r"\d{8,}", path.name)]
        return sorted(int(path.name) for path in folders if (path / MANIFEST).is_file())
    return []


def suggest_older(path: Path) -> str:
    """Suggest an older checkpoint, as a command."""
    others = [number for number in checkpoint_numbers(path.parent) if f"{number:08d}" != path.name]
    limit = int(path.name) if path.name.isdecimal() else None
    older = [number for number in others if limit is None or number < limit][-3:]
    run = path.absolute().parent.parent.name
    if older:
        numbers = ", ".join(map(str, reversed(older)))
        return f"take an older one: {numbers} (`sparring resume {run} --checkpoint {older[-1]}`)"
    if others:
        return f"there are only newer ones: {', '.join(map(str, others[:3]))}"
    return "there is no other checkpoint; start again with `sparring train`"
