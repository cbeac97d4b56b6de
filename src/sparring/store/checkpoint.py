"""Numbered checkpoints in a folder: atomic saves, also in the background, loading, pruning."""

from __future__ import annotations

import errno
import shutil
import warnings
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from sparring.errors import SparringWarning
from sparring.machine import format_bytes
from sparring.store.errors import CheckpointError
from sparring.store.files import TEMP, locked, remove_folder, sync_folder, temp_name
from sparring.store.manifest import (
    Checkpoint,
    SegmentLoader,
    Tensors,
    amend,
    checkpoint_numbers,
    describe_nonfinite,
    make_checkpoint,
    read_manifest,
    read_verified_files,
    suggest_older,
    unpack_checkpoint,
    write_files,
)
from sparring.store.segments import (
    SEGMENTS,
    StoredSegment,
    bytes_to_write,
    copy_new,
    remove_unused,
    segments_of,
    write_segments,
)

__all__ = [
    "BackgroundSaver",
    "Checkpoint",
    "CheckpointError",
    "amend",
    "checkpoint_numbers",
    "is_valid",
    "latest",
    "load",
    "newest_valid",
    "prune",
    "remove_unused_segments",
    "rename_damaged",
    "save",
]

LOCK = ".lock"
REPLACED = ".old-"
"""Prefix of a checkpoint while its replacement is written; restored if that fails."""
DAMAGED = "damaged-"
"""Prefix of a damaged checkpoint, which is ignored."""
LOCK_S = 60.0
"""Seconds that a save waits for another save into the same folder."""


def save(
    folder: Path,
    number: int,
    *,
    tensors: Tensors,
    blobs: Mapping[str, bytes],
    meta: Mapping[str, Any],
    segments: Mapping[str, SegmentLoader] | None = None,
    standalone: bool = False,
) -> Path:
    """Write `folder/<number>/` and return it; a checkpoint of that number is replaced.

    tensors: one safetensors file per group. blobs: one file each, by name. meta: JSON values.
    segments: loaders of chunks that checkpoints share; called one by one as they are written.
    standalone: put the segments into the checkpoint's folder, so that it can be moved. The folder
        must hold no other checkpoints.
    If the process dies, the folder holds the old checkpoints, and the new one complete or not at
    all.
    """
    path = write(folder, make_checkpoint(number, tensors, blobs, meta, segments or {}))
    if standalone and segments:
        (folder / SEGMENTS).rename(path / SEGMENTS)
        sync_folder(path)
    return path


def write(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint: its segments first, then a temporary folder, then the rename."""
    final = folder / f"{checkpoint.number:08d}"
    if error := describe_nonfinite(checkpoint):
        raise CheckpointError(
            f"checkpoint {checkpoint.number} was not saved: {error}; {suggest_older(final)}, "
            "lower lr"
        )
    temp, renamed = folder / temp_name(final.name), False
    with explain_os_errors(folder, checkpoint):
        folder.mkdir(exist_ok=True)
        with locked(folder / LOCK, wait_s=LOCK_S) as is_locked:
            if is_locked:
                remove_unfinished(folder)
            try:
                entries = write_segments(folder / SEGMENTS, checkpoint.segments)
                write_files(temp, checkpoint, entries)
                if final.exists():
                    old = folder / f"{REPLACED}{final.name}"
                    shutil.rmtree(old, ignore_errors=True)
                    final.rename(old)
                temp.rename(final)
                renamed = True
                sync_folder(folder)
            except BaseException:
                shutil.rmtree(final if renamed else temp, ignore_errors=True)
                raise
            finally:
                finish_replacement(folder)
                remove_unused(folder / SEGMENTS, checkpoints_with_segments(folder))
    return final


@contextmanager
def explain_os_errors(folder: Path, checkpoint: Checkpoint) -> Iterator[None]:
    """Raise OSErrors as CheckpointErrors with the next step."""
    try:
        yield
    except BlockingIOError as error:
        raise CheckpointError(
            f"checkpoint {checkpoint.number} was not saved: another process is saving into "
            f"{folder}; train a run in one process only"
        ) from error
    except OSError as error:
        text = f"checkpoint {checkpoint.number} was not saved into {folder}: "
        text += error.strerror or str(error)
        needs = checkpoint.size + bytes_to_write(checkpoint.segments)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            text += f"; it needs {format_bytes(needs)}"
            with suppress(OSError):
                text += f", {format_bytes(shutil.disk_usage(folder).free)} are free"
            text += "; free some space, for example by deleting old runs, or keep fewer checkpoints"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            text += f"; it needs {format_bytes(needs)} in a folder that this user may write"
        elif error.errno == errno.ENOENT:
            text += "; was the run's folder moved or deleted?"
        else:
            text += "; check the disk"
        kept = checkpoint_numbers(folder)
        text += f"; checkpoint {kept[-1]} is untouched" if kept else ""
        raise CheckpointError(text) from error


def latest(folder: Path) -> Path | None:
    """Return the newest checkpoint that has a manifest; `load` verifies it."""
    remove_leftovers(folder)
    numbers = checkpoint_numbers(folder)
    return folder / f"{numbers[-1]:08d}" if numbers else None


def load(path: Path, *, segments: bool = True) -> Checkpoint:
    """Read and verify a checkpoint.

    segments: also verify its segments now. Their loaders verify them again when called; playing
        needs none of them.
    """
    manifest, files = read_checked(path, segments=segments)
    return replace(unpack_checkpoint(path, manifest, files), segments=segments_of(path, manifest))


def read_checked(path: Path, *, segments: bool) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return manifest and files of a checkpoint; raises CheckpointError if it is damaged."""
    manifest, files = read_verified_files(path)
    for stored in segments_of(path, manifest).values() if segments else ():
        stored.check()
    return manifest, files


def is_valid(path: Path, *, segments: bool = True) -> bool:
    """Whether a checkpoint is complete and undamaged. segments: include its segments."""
    try:
        read_checked(path, segments=segments)
    except CheckpointError:
        return False
    return True


def newest_valid(folder: Path, *, segments: bool = True) -> Path | None:
    """Return the newest undamaged checkpoint; damaged ones are skipped with a warning.

    segments: its segments must be undamaged too; playing needs none of them.
    """
    remove_leftovers(folder)
    numbers = checkpoint_numbers(folder)
    for number in reversed(numbers):
        path = folder / f"{number:08d}"
        try:
            read_checked(path, segments=segments)
        except CheckpointError as error:
            warnings.warn(f"skipped checkpoint {number}: {error}", SparringWarning, stacklevel=2)
        else:
            return path
    if not numbers:
        return None
    text = f"all {len(numbers)} checkpoints in {folder} are damaged; "
    if segments and any(is_valid(folder / f"{n:08d}", segments=False) for n in numbers):
        run = folder.absolute().parent.name
        text += f"only the replay buffer is damaged: `sparring resume {run} --clear-replay`, or "
    raise CheckpointError(
        f"{text}start again with `sparring train`, or restore the folder from a backup"
    )


def prune(
    folder: Path, *, keep: int, always: Collection[int] = (), needed: Collection[str] = ()
) -> list[int]:
    """Remove all but the newest `keep` checkpoints and those in `always`; return the removed.

    Segments that no checkpoint names are removed, too.
    needed: segment files of the running save.
    """
    if keep < 1:
        raise CheckpointError(f"keep {keep} must be at least 1, or a crash loses the run")
    removed = [number for number in checkpoint_numbers(folder)[:-keep] if number not in always]
    for number in removed:
        with suppress(FileNotFoundError):
            remove_folder(folder / f"{number:08d}")
    remove_unused_segments(folder, needed)
    return removed


def remove_unused_segments(folder: Path, needed: Collection[str] = ()) -> None:
    """Remove the segments that no checkpoint names. A running save does so at its end."""
    if (folder / SEGMENTS).is_dir():
        with suppress(OSError), locked(folder / LOCK):
            remove_unused(folder / SEGMENTS, checkpoints_with_segments(folder), needed)


def checkpoints_with_segments(folder: Path) -> list[Path]:
    """Return the checkpoints whose segments are needed; damaged ones need none."""
    return [
        *(folder / f"{number:08d}" for number in checkpoint_numbers(folder)),
        *folder.glob(f"{REPLACED}*"),
    ]


def rename_damaged(folder: Path, *, after: int) -> list[int]:
    """Rename damaged checkpoints that are newer than the one a run resumes from.

    With their numbers they would count as the newest, and `prune` would keep them.
    """
    newer = [number for number in checkpoint_numbers(folder) if number > after]
    damaged = [number for number in newer if not is_valid(folder / f"{number:08d}")]
    for number in damaged:
        target = folder / f"{DAMAGED}{number:08d}"
        shutil.rmtree(target, ignore_errors=True)
        (folder / f"{number:08d}").rename(target)
    return damaged


def remove_leftovers(folder: Path) -> None:
    """Remove leftovers of killed saves, unless a save runs or the folder is read-only."""
    if folder.is_dir():
        with suppress(OSError), locked(folder / LOCK) as is_locked:
            if is_locked:
                remove_unfinished(folder)


def remove_unfinished(folder: Path) -> None:
    """Remove unfinished folders. Call it with the lock, when no save can be writing them."""
    for path in folder.glob(f"{TEMP}*"):
        shutil.rmtree(path, ignore_errors=True)
    finish_replacement(folder)


def finish_replacement(folder: Path) -> None:
    """Remove a replaced checkpoint, or restore it if its replacement is missing."""
    for old in folder.glob(f"{REPLACED}*"):
        replacement = folder / old.name.removeprefix(REPLACED)
        if replacement.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(replacement)


class BackgroundSaver:
    """Saves in a background thread. Training waits for copies of segments, not for the disk."""

    def __init__(self, folder: Path, known: Mapping[str, SegmentLoader] | None = None) -> None:
        """Start a thread for one folder.

        known: segments of the checkpoint that the run resumed from.
        """
        self.folder, self._known = folder, dict(known or {})
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._running: Future[Path] | None = None
        self._needed: set[str] = set()
        self._closed = False
        self.saved = -1
        """Number of the last saved checkpoint."""

    def __enter__(self) -> BackgroundSaver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except CheckpointError as error:
            if exc is None:
                raise
            exc.add_note(str(error))  # the first error matters more

    def submit(
        self,
        number: int,
        *,
        tensors: Tensors,
        blobs: Mapping[str, bytes],
        meta: Mapping[str, Any],
        segments: Mapping[str, SegmentLoader] | None = None,
    ) -> None:
        """Start a save and return; the caller must not modify the tensors any more.

        Waits for the previous save, and raises its CheckpointError if it failed. Loaders are called
        for segments that are not on the disk yet.
        """
        if self._closed:
            raise CheckpointError("the saver is closed; make a new one")
        self.wait()
        copied = copy_new(self.folder / SEGMENTS, segments or {}, self._known)
        checkpoint = make_checkpoint(number, tensors, blobs, meta, copied)
        self._needed = {
            read.file_name for read in copied.values() if isinstance(read, StoredSegment)
        }
        self._running = self._writer.submit(self._write, checkpoint)

    def _write(self, checkpoint: Checkpoint) -> Path:
        path = write(self.folder, checkpoint)
        if checkpoint.segments:
            self._known = dict(segments_of(path, read_manifest(path)))
        self.saved = checkpoint.number
        return path

    @property
    def needed(self) -> set[str]:
        """Segment files that the running save needs."""
        is_running = self._running is not None and not self._running.done()
        return self._needed if is_running else set()

    def wait(self) -> Path | None:
        """Wait for the running save and return its folder, None if there is none."""
        if self._running is None:
            return None
        try:
            path = self._running.result()
        except CheckpointError:
            self._running = None
            raise
        except Exception as error:
            self._running = None
            raise CheckpointError(f"the background save failed: {error!r}") from error
        self._running = None
        return path

    def close(self) -> None:
        """Finish the running save and end the thread; raises the error of the save."""
        self._closed = True
        try:
            self.wait()
        finally:
            self._writer.shutdown()
