"""Stretches of what is remembered: each is a file that is written once, and checkpoints name it.

The files lie beside the checkpoints that share them, by the hash of their bytes: what a process
that died has left is never taken for something else of the same name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import torch as safetensors
from torch import Tensor

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

SEGMENTS = "segments"
"""The folder of the files: beside checkpoints, or in the only one that has them."""
SUFFIX = ".safetensors"

Signature = tuple[int, int, int, int]
"""Of a file: disk, inode, size and time of the last change."""
_hashes: dict[Signature, str] = {}
"""Of files that this process has read. Whether a checkpoint is whole is asked several times before
a run goes on, and hundreds of megabytes are to be read once for that."""


@dataclass(frozen=True)
class StoredSegment:
    """A segment on the disk. Called, it is read, and every byte is checked."""

    checkpoint: Path
    """The one that names it."""
    name: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        """Its content's."""
        return f"{self.sha256}{SUFFIX}"

    @property
    def file(self) -> Path:
        within = self.checkpoint / SEGMENTS / self.file_name
        return within if within.exists() else self.checkpoint.parent / SEGMENTS / self.file_name

    @property
    def home(self) -> Path:
        """The folder that its file must not leave: the run's, else that of the checkpoints."""
        home = containment_root(self.checkpoint)
        return self.checkpoint.parent if home == self.checkpoint else home

    def __call__(self) -> dict[str, Tensor]:
        try:
            data = read_regular(self.file, self.size, within=self.home)
        except OSError as error:
            raise self._wrong(f"cannot be read ({error.strerror})") from error
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise self._wrong("is damaged (sha256 differs)")
        try:
            return unpack_tensors(data)
        except ValueError as error:
            raise self._wrong(f"cannot be used: {error}") from error

    def check(self) -> None:
        """Raise a CheckpointError unless it is there with every byte; it is read once for that."""
        try:
            check_regular(self.file, MAX_INT, within=self.home)
            stat = self.file.stat()
            if stat.st_size != self.size:
                raise self._wrong(f"has {stat.st_size} bytes instead of {self.size}")
            signature = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
            if signature not in _hashes:
                with self.file.open("rb") as data:
                    _hashes[signature] = hashlib.file_digest(data, "sha256").hexdigest()
        except OSError as error:
            raise self._wrong(f"cannot be read ({error.strerror})") from error
        if _hashes[signature] != self.sha256:
            raise self._wrong("is damaged (sha256 differs)")

    def lies_in(self, place: Path) -> bool:
        """Whether a folder has its file, as far as the size tells."""
        with suppress(OSError):
            return (place / self.file_name).stat().st_size == self.size
        return False

    def entry(self) -> dict[str, Any]:
        """What a manifest says about it."""
        return {"size": self.size, "sha256": self.sha256}

    def _wrong(self, what: str) -> CheckpointError:
        run = self.checkpoint.absolute().parent.parent.name
        return CheckpointError(
            f"{self.checkpoint}: segment {self.name} {what}: {self.file}; go on without what is "
            f"remembered: `sparring resume {run} --clear-replay`; {suggest_older(self.checkpoint)}"
        )


@dataclass(frozen=True)
class MemorySegment:
    """A segment in memory, about to be written. Nobody else has a reference to it."""

    tensors: dict[str, Tensor]

    def __call__(self) -> dict[str, Tensor]:
        return self.tensors

    @property
    def size(self) -> int:
        """Bytes on the disk, without headers."""
        return sum(tensor.nbytes for tensor in self.tensors.values())


def segments_of(checkpoint: Path, manifest: Mapping[str, Any]) -> dict[str, StoredSegment]:
    """Return the segments that a checkpoint names; whether they are there is another question."""
    return {
        name: StoredSegment(checkpoint, name, entry["size"], entry["sha256"])
        for name, entry in manifest.get("segments", {}).items()
    }


def copy_new(
    place: Path, segments: Mapping[str, SegmentLoader], known: Mapping[str, SegmentLoader]
) -> dict[str, SegmentLoader]:
    """Copy the segments that a folder does not have yet, so that the learner may go on.

    known: those that were written or read before, by name.
    """
    found: dict[str, SegmentLoader] = {}
    for name, read in segments.items():
        stored = read if isinstance(read, StoredSegment) else known.get(name)
        is_there = isinstance(stored, StoredSegment) and stored.lies_in(place)
        found[name] = stored if stored and is_there else MemorySegment(to_contiguous_cpu(read()))
    return found


def write_segments(place: Path, segments: Mapping[str, SegmentLoader]) -> dict[str, dict[str, Any]]:
    """Write what a folder does not have; all of it is on the disk afterwards.

    Returns what a manifest is to say about them.
    """
    entries: dict[str, dict[str, Any]] = {}
    wrote = False
    for name, read in segments.items():
        if isinstance(read, StoredSegment) and read.lies_in(place):
            entries[name] = read.entry()
            continue
        if not place.is_dir():
            place.mkdir()
            sync_folder(place.parent)
        entries[name] = write_segment(place, read())
        wrote = True
    if wrote:
        sync_folder(place)
    return entries


def write_segment(place: Path, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Write a segment by its hash; a file is there whole or not at all."""
    data = safetensors.save(to_contiguous_cpu(tensors))
    sha256 = hashlib.sha256(data).hexdigest()
    temp = place / temp_name(sha256[:8])
    write_file(temp, data)
    temp.replace(place / f"{sha256}{SUFFIX}")
    return {"size": len(data), "sha256": sha256}


def files_named_by(checkpoints: Iterable[Path]) -> set[str] | None:
    """Return the files that checkpoints need; None if one of them cannot be asked just now."""
    names: set[str] = set()
    for checkpoint in list(checkpoints):
        try:
            manifest = read_manifest(checkpoint)
        except CheckpointError as error:
            why = error.__cause__
            if isinstance(why, OSError) and not isinstance(why, FileNotFoundError):
                return None
            continue  # damaged or gone: it needs nothing any more
        names |= {stored.file_name for stored in segments_of(checkpoint, manifest).values()}
    return names


def remove_unused(place: Path, checkpoints: Iterable[Path], needed: Collection[str] = ()) -> None:
    """Remove the files that no checkpoint names, and what a killed save has left.

    Only for who holds the lock of the checkpoints, or knows that nobody saves.
    needed: files that a checkpoint will name that is not written yet.
    """
    if not place.is_dir():
        return
    names = files_named_by(checkpoints)
    if names is None:
        return
    with suppress(OSError):
        for file in place.iterdir():
            if file.name not in names and file.name not in needed:
                file.unlink(missing_ok=True)
        place.rmdir()  # which works if it is empty


def link_segments(checkpoints: Path, others: Path) -> None:
    """Give copies of checkpoints in another folder the files that they name, as links if it can.

    One that is missing is left out: who only plays needs none.
    """
    for name in sorted(files_named_by(others.iterdir()) or ()):
        (others / SEGMENTS).mkdir(exist_ok=True)
        link_or_copy(checkpoints / SEGMENTS / name, others / SEGMENTS / name)


def bytes_to_write(segments: Mapping[str, SegmentLoader]) -> int:
    """How much segments that are in memory will take on the disk, without headers."""
    return sum(read.size for read in segments.values() if isinstance(read, MemorySegment))
