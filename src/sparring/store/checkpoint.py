"""A folder of numbered checkpoints: saved whole or not at all, in the background if wanted."""

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
"""A checkpoint that is being replaced; it goes back if its successor does not arrive."""
DAMAGED = "damaged-"
"""A checkpoint that was passed over because it is not whole; nobody counts it any more."""
LOCK_S = 60.0
"""How long a save waits for another one into the same folder."""


def save(
    folder: Path,
    number: int,
    *,
    tensors: Tensors,
    blobs: Mapping[str, bytes],
    meta: Mapping[str, Any],
    segments: Mapping[str, SegmentLoader] | None = None,
    alone: bool = False,
) -> Path:
    """Write `folder/<number>/` and return it; a checkpoint of that number is replaced.

    tensors: one safetensors file per group. blobs: one file each, by name. meta: plain values.
    segments: what it shares with others; asked for one by one, as they are written.
    alone: with its segments in its own folder, to be moved anywhere. There must be no others.
    Whenever the process dies, the folder holds what it held before, or also the new checkpoint.
    """
    path = write(folder, make_checkpoint(number, tensors, blobs, meta, segments or {}))
    if alone and segments:
        (folder / SEGMENTS).rename(path / SEGMENTS)
        sync_folder(path)
    return path


def write(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint that nobody changes any more; the segments that it names come first."""
    final = folder / f"{checkpoint.number:08d}"
    if wrong := describe_nonfinite(checkpoint):
        raise CheckpointError(
            f"checkpoint {checkpoint.number} was not saved: {wrong}; {suggest_older(final)}, "
            "lower lr"
        )
    temp, placed = folder / temp_name(final.name), False
    with explain_os_errors(folder, checkpoint):
        folder.mkdir(exist_ok=True)
        with locked(folder / LOCK, wait_s=LOCK_S) as held:
            if held:
                remove_unfinished(folder)
            try:
                entries = write_segments(folder / SEGMENTS, checkpoint.segments)
                write_files(temp, checkpoint, entries)
                if final.exists():
                    old = folder / f"{REPLACED}{final.name}"
                    shutil.rmtree(old, ignore_errors=True)
                    final.rename(old)
                temp.rename(final)
                placed = True
                sync_folder(folder)
            except BaseException:
                shutil.rmtree(final if placed else temp, ignore_errors=True)
                raise
            finally:
                finish_replacement(folder)
                remove_unused(folder / SEGMENTS, checkpoints_with_segments(folder))
    return final


@contextmanager
def explain_os_errors(folder: Path, checkpoint: Checkpoint) -> Iterator[None]:
    """Turn what the system says into what to do about it."""
    try:
        yield
    except BlockingIOError as wrong:
        raise CheckpointError(
            f"checkpoint {checkpoint.number} was not saved: another process is saving into "
            f"{folder}; train a run in one process only"
        ) from wrong
    except OSError as wrong:
        text = f"checkpoint {checkpoint.number} was not saved into {folder}: "
        text += wrong.strerror or str(wrong)
        needs = checkpoint.size + bytes_to_write(checkpoint.segments)
        if wrong.errno in (errno.ENOSPC, errno.EDQUOT):
            text += f"; it needs {format_bytes(needs)}"
            with suppress(OSError):
                text += f", {format_bytes(shutil.disk_usage(folder).free)} are free"
            text += "; free some space, for example by deleting old runs, or keep fewer checkpoints"
        elif wrong.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            text += f"; it needs {format_bytes(needs)} in a folder that this user may write"
        elif wrong.errno == errno.ENOENT:
            text += "; was the run's folder moved or deleted?"
        else:
            text += "; check the disk"
        kept = checkpoint_numbers(folder)
        text += f"; checkpoint {kept[-1]} is untouched" if kept else ""
        raise CheckpointError(text) from wrong


def latest(folder: Path) -> Path | None:
    """Return the newest checkpoint that has a manifest; `load` finds out whether it is whole."""
    remove_leftovers(folder)
    found = checkpoint_numbers(folder)
    return folder / f"{found[-1]:08d}" if found else None


def load(path: Path, *, segments: bool = True) -> Checkpoint:
    """Read a checkpoint; every byte is verified before it is used.

    segments: make sure of these now. They are read, and verified once more, when they are called;
        who only plays needs none of them.
    """
    manifest, files = read_checked(path, segments=segments)
    return replace(unpack_checkpoint(path, manifest, files), segments=segments_of(path, manifest))


def read_checked(path: Path, *, segments: bool) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read manifest and files of a checkpoint; a CheckpointError says what is not whole."""
    manifest, files = read_verified_files(path)
    for stored in segments_of(path, manifest).values() if segments else ():
        stored.check()
    return manifest, files


def is_valid(path: Path, *, segments: bool = True) -> bool:
    """Whether a checkpoint is there with every byte as it was written.

    segments: whether those that it names are asked for, too.
    """
    try:
        read_checked(path, segments=segments)
    except CheckpointError:
        return False
    return True


def newest_valid(folder: Path, *, segments: bool = True) -> Path | None:
    """Return the newest checkpoint that is whole; a warning names each one that is not.

    segments: whether those that it names have to be whole, too; who only plays needs none.
    """
    remove_leftovers(folder)
    found = checkpoint_numbers(folder)
    for number in reversed(found):
        path = folder / f"{number:08d}"
        try:
            read_checked(path, segments=segments)
        except CheckpointError as wrong:
            warnings.warn(f"skipped checkpoint {number}: {wrong}", SparringWarning, stacklevel=2)
        else:
            return path
    if not found:
        return None
    text = f"none of the {len(found)} checkpoints in {folder} is whole; "
    if segments and any(is_valid(folder / f"{n:08d}", segments=False) for n in found):
        run = folder.absolute().parent.name
        text += f"only what is remembered is damaged: `sparring resume {run} --clear-replay`, or "
    raise CheckpointError(
        f"{text}start again with `sparring train`, or restore the folder from a backup"
    )


def prune(
    folder: Path, *, keep: int, always: Collection[int] = (), needed: Collection[str] = ()
) -> list[int]:
    """Remove all but the newest `keep` checkpoints and those in `always`; return what went.

    Segments that nobody names then go, too.
    needed: files of segments that a save under way relies on.
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
    """Remove the segments that no checkpoint names. A save under way does so at its end."""
    if (folder / SEGMENTS).is_dir():
        with suppress(OSError), locked(folder / LOCK):
            remove_unused(folder / SEGMENTS, checkpoints_with_segments(folder), needed)


def checkpoints_with_segments(folder: Path) -> list[Path]:
    """Return the checkpoints whose segments stay; those that were set aside need none."""
    return [
        *(folder / f"{number:08d}" for number in checkpoint_numbers(folder)),
        *folder.glob(f"{REPLACED}*"),
    ]


def rename_damaged(folder: Path, *, after: int) -> list[int]:
    """Rename the damaged checkpoints behind one that a run goes on from.

    Under their own numbers they would count as the newest and be kept in place of whole ones.
    """
    newer = [number for number in checkpoint_numbers(folder) if number > after]
    passed = [number for number in newer if not is_valid(folder / f"{number:08d}")]
    for number in passed:
        aside = folder / f"{DAMAGED}{number:08d}"
        shutil.rmtree(aside, ignore_errors=True)
        (folder / f"{number:08d}").rename(aside)
    return passed


def remove_leftovers(folder: Path) -> None:
    """Remove what killed saves left, unless a save is under way or the folder is read-only."""
    if folder.is_dir():
        with suppress(OSError), locked(folder / LOCK) as held:
            if held:
                remove_unfinished(folder)


def remove_unfinished(folder: Path) -> None:
    """Remove unfinished folders. Who holds the lock knows that none of them has a writer."""
    for path in folder.glob(f"{TEMP}*"):
        shutil.rmtree(path, ignore_errors=True)
    finish_replacement(folder)


def finish_replacement(folder: Path) -> None:
    """Put a checkpoint back whose successor did not arrive; remove it if that one did."""
    for old in folder.glob(f"{REPLACED}*"):
        successor = folder / old.name.removeprefix(REPLACED)
        if successor.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(successor)


class BackgroundSaver:
    """Saves in a thread of its own. Training waits for copies of segments, not for the disk."""

    def __init__(self, folder: Path, known: Mapping[str, SegmentLoader] | None = None) -> None:
        """Make a thread for the checkpoints of a folder.

        known: segments of the checkpoint that the learner goes on from.
        """
        self.folder, self._known = folder, dict(known or {})
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._running: Future[Path] | None = None
        self._needed: set[str] = set()
        self._closed = False
        self.saved = -1
        """The number of the last checkpoint that is on the disk."""

    def __enter__(self) -> BackgroundSaver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except CheckpointError as wrong:
            if error is None:
                raise
            error.add_note(str(wrong))  # the first error says more

    def submit(
        self,
        number: int,
        *,
        tensors: Tensors,
        blobs: Mapping[str, bytes],
        meta: Mapping[str, Any],
        segments: Mapping[str, SegmentLoader] | None = None,
    ) -> None:
        """Take over what is to be saved and return; nobody may change the tensors any more.

        Of the segments those are asked for that are not on the disk. The save before must be done:
        that is waited for. If it failed, its CheckpointError is raised here, and nothing is saved.
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
        """The files of segments that the running save relies on."""
        is_running = self._running is not None and not self._running.done()
        return self._needed if is_running else set()

    def wait(self) -> Path | None:
        """Wait for the running save; return its folder, None if nothing was running."""
        if self._running is None:
            return None
        try:
            path = self._running.result()
        except CheckpointError:
            self._running = None
            raise
        except Exception as wrong:
            self._running = None
            raise CheckpointError(f"the background save failed: {wrong!r}") from wrong
        self._running = None
        return path

    def close(self) -> None:
        """Finish the running save and end the thread; an error of it is raised."""
        self._closed = True
        try:
            self.wait()
        finally:
            self._writer.shutdown()
