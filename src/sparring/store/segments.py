"""Segments: immutable chunks of the replay buffer that checkpoints share.

The files lie beside the checkpoints and are named by the hash of their bytes, so that a leftover
of a process that died is never mistaken for another segment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparring.store.errors import CheckpointError
from sparring.store.files import (
    check_regular,
    link_or_copy,
    read_regular,
    sync_folder,
    temp_name,
    write_file,
)
from sparring.store.manifest import (
    SegmentLoader,
    containment_root,
    read_manifest,
    suggest_older,
    to_contiguous_cpu,
)
from sparring.store.schema import MAX_INT
from sparring.store.tensors import unpack_tensors

if TYPE_CHECKING:
    from torch import Tensor

SEGMENTS = "segments"
"""Folder of the files: beside the checkpoints, or in a standalone checkpoint."""
SUFFIX = ".safetensors"

Signature = tuple[int, int, int, int]
"""Device, inode, size and modification time of a file."""
_hashes: dict[Signature, str] = {}
"""Hashes of files that this process has read: a checkpoint is verified several times before a run
resumes, and hundreds of megabytes should be read once."""


@dataclass(frozen=True)
class StoredSegment:
    """A segment on the disk; calling it reads and verifies the file."""

    checkpoint: Path
    """Checkpoint that names the segment."""
    name: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.sha256}{SUFFIX}"

    @property
    def file(self) -> Path:
        within = self.checkpoint / SEGMENTS / self.file_name
        return within if within.exists() else self.checkpoint.parent / SEGMENTS / self.file_name

    @property
    def root(self) -> Path:
        """Folder that symlinks must not leave: the run, or the folder of the checkpoints."""
        root = containment_root(self.checkpoint)
        return self.checkpoint.parent if root == self.checkpoint else root

    def __call__(self) -> dict[str, Tensor]:
        try:
            data = read_regular(self.file, self.size, within=self.root)
        except OSError as error:
            raise self._error(f"cannot be read ({error.strerror})") from error
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise self._error("is damaged (sha256 differs)")
        try:
            return unpack_tensors(data)
        except ValueError as error:
            raise self._error(f"cannot be used: {error}") from error

    def check(self) -> None:
        """Raise CheckpointError if the file is missing or damaged; reads it once per process."""
        try:
            check_regular(self.file, MAX_INT, within=self.root)
            stat = self.file.stat()
            if stat.st_size != self.size:
                raise self._error(f"has {stat.st_size} bytes instead of {self.size}")
            signature = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
            if signature not in _hashes:
                with self.file.open("rb") as data:
                    _hashes[signature] = hashlib.file_digest(data, "sha256").hexdigest()
        except OSError as error:
            raise self._error(f"cannot be read ({error.strerror})") from error
        if _hashes[signature] != self.sha256:
            raise self._error("is damaged (sha256 differs)")

    def is_in(self, folder: Path) -> bool:
        """Whether a folder has a file of this hash and size."""
        with suppress(OSError):
            return (folder / self.file_name).stat().st_size == self.size
        return False

    def entry(self) -> dict[str, Any]:
        """Return the entry for a manifest."""
        return {"size": self.size, "sha256": self.sha256}

    def _error(self, problem: str) -> CheckpointError:
        run = self.checkpoint.absolute().parent.parent.name
        return CheckpointError(
            f"{self.checkpoint}: segment {self.name} {problem}: {self.file}; resume without "
            f"the replay buffer: `sparring resume {run} --clear-replay`; "
            f"{suggest_older(self.checkpoint)}"
        )


@dataclass(frozen=True)
class MemorySegment:
    """A copied segment in memory that is about to be written."""

    tensors: dict[str, Tensor]

    def __call__(self) -> dict[str, Tensor]:
        return self.tensors

    @property
    def size(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors.values())


def segments_of(checkpoint: Path, manifest: Mapping[str, Any]) -> dict[str, StoredSegment]:
    """Return the segments that a checkpoint names, without checking their files."""
    return {
        name: StoredSegment(checkpoint, name, entry["size"], entry["sha256"])
        for name, entry in manifest.get("segments", {}).items()
    }


def copy_new(
    folder: Path, segments: Mapping[str, SegmentLoader], known: Mapping[str, SegmentLoader]
) -> dict[str, SegmentLoader]:
    """Copy the segments that a folder does not have yet, so that the learner can continue.

    known: segments that were written or read before, by name.
    """
    copied: dict[str, SegmentLoader] = {}
    for name, read in segments.items():
        stored = read if isinstance(read, StoredSegment) else known.get(name)
        is_stored = isinstance(stored, StoredSegment) and stored.is_in(folder)
        copied[name] = stored if stored and is_stored else MemorySegment(to_contiguous_cpu(read()))
    return copied


def write_segments(
    folder: Path, segments: Mapping[str, SegmentLoader]
) -> dict[str, dict[str, Any]]:
    """Write the segments that a folder does not have, and return their manifest entries."""
    entries: dict[str, dict[str, Any]] = {}
    wrote = False
    for name, read in segments.items():
        if isinstance(read, StoredSegment) and read.is_in(folder):
            entries[name] = read.entry()
            continue
        if not folder.is_dir():
            folder.mkdir()
            sync_folder(folder.parent)
        entries[name] = write_segment(folder, read())
        wrote = True
    if wrote:
        sync_folder(folder)
    return entries


def write_segment(folder: Path, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Write a segment atomically, named by its hash; return its manifest entry."""
    from safetensors.torch import save

    data = save(to_contiguous_cpu(tensors))
    sha256 = hashlib.sha256(data).hexdigest()
    temp = folder / temp_name(sha256[:8])
    write_file(temp, data)
    temp.replace(folder / f"{sha256}{SUFFIX}")
    return {"size": len(data), "sha256": sha256}


def files_named_by(checkpoints: Iterable[Path]) -> set[str] | None:
    """Return the segment files of checkpoints; None if a manifest cannot be read right now."""
    names: set[str] = set()
    for checkpoint in list(checkpoints):
        try:
            manifest = read_manifest(checkpoint)
        except CheckpointError as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
                return None
            continue  # damaged or removed: it needs no segments
        names |= {stored.file_name for stored in segments_of(checkpoint, manifest).values()}
    return names


def remove_unused(folder: Path, checkpoints: Iterable[Path], needed: Collection[str] = ()) -> None:
    """Remove files that no checkpoint names, and leftovers of killed saves.

    Call it with the lock of the checkpoints, or while no save can run.
    needed: files of a checkpoint that is not written yet.
    """
    if not folder.is_dir():
        return
    names = files_named_by(checkpoints)
    if names is None:
        return
    with suppress(OSError):
        for file in folder.iterdir():
            if file.name not in names and file.name not in needed:
                file.unlink(missing_ok=True)
        folder.rmdir()  # fails unless it is empty


def link_segments(checkpoints: Path, others: Path) -> None:
    """Link or copy the segment files of copied checkpoints into their folder.

    Missing files are skipped: playing needs none.
    """
    for name in sorted(files_named_by(others.iterdir()) or ()):
        (others / SEGMENTS).mkdir(exist_ok=True)
        link_or_copy(checkpoints / SEGMENTS / name, others / SEGMENTS / name)


def bytes_to_write(segments: Mapping[str, SegmentLoader]) -> int:
    """Return the size of segments that are still in memory."""
    return sum(read.size for read in segments.values() if isinstance(read, MemorySegment))
