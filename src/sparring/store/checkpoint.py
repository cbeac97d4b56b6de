"""A folder of numbered checkpoints: saved whole or not at all, in the background if wanted."""

from __future__ import annotations

import errno
import shutil
import warnings
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from sparring.errors import SparringWarning
from sparring.machine import show_size
from sparring.store.files import TEMP, locked, remove_folder, sync_folder, temp_name
from sparring.store.manifest import (
    Checkpoint,
    CheckpointError,
    Tensors,
    advice,
    copied,
    load,
    not_finite,
    numbers,
    verified,
    write_into,
)

__all__ = [
    "BackgroundSaver",
    "Checkpoint",
    "CheckpointError",
    "is_whole",
    "latest",
    "load",
    "newest_valid",
    "numbers",
    "prune",
    "save",
    "set_aside",
]

LOCK = ".lock"
OLD = ".old-"
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
) -> Path:
    """Write `folder/<number>/` and return it; a checkpoint of that number is replaced.

    tensors: one safetensors file per group. blobs: one file each, by name. meta: plain values.
    Whenever the process dies, the folder holds what it held before, or also the new checkpoint.
    """
    return write(folder, copied(number, tensors, blobs, meta))


def write(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint that nobody changes any more."""
    final = folder / f"{checkpoint.number:08d}"
    if wrong := not_finite(checkpoint):
        raise CheckpointError(
            f"checkpoint {checkpoint.number} was not saved: {wrong}; {advice(final)}, lower lr"
        )
    temp, placed = folder / temp_name(final.name), False
    with explained(folder, checkpoint):
        folder.mkdir(exist_ok=True)
        with locked(folder / LOCK, wait_s=LOCK_S) as held:
            if held:
                sweep(folder)
            try:
                write_into(temp, checkpoint)
                if final.exists():
                    old = folder / f"{OLD}{final.name}"
                    shutil.rmtree(old, ignore_errors=True)
                    final.rename(old)
                temp.rename(final)
                placed = True
                sync_folder(folder)
            except BaseException:
                shutil.rmtree(final if placed else temp, ignore_errors=True)
                settle(folder)
                raise
            settle(folder)
    return final


@contextmanager
def explained(folder: Path, checkpoint: Checkpoint) -> Iterator[None]:
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
        if wrong.errno in (errno.ENOSPC, errno.EDQUOT):
            text += f"; it needs {show_size(checkpoint.size)}"
            with suppress(OSError):
                text += f", {show_size(shutil.disk_usage(folder).free)} are free"
            text += "; free some space, for example by deleting old runs, or keep fewer checkpoints"
        elif wrong.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            text += f"; it needs {show_size(checkpoint.size)} in a folder that this user may write"
        elif wrong.errno == errno.ENOENT:
            text += "; was the run's folder moved or deleted?"
        else:
            text += "; check the disk"
        kept = numbers(folder)
        text += f"; checkpoint {kept[-1]} is untouched" if kept else ""
        raise CheckpointError(text) from wrong


def latest(folder: Path) -> Path | None:
    """Return the newest checkpoint that has a manifest; `load` finds out whether it is whole."""
    tidy(folder)
    found = numbers(folder)
    return folder / f"{found[-1]:08d}" if found else None


def is_whole(path: Path) -> bool:
    """Whether a checkpoint is there with every byte as it was written."""
    try:
        verified(path)
    except CheckpointError:
        return False
    return True


def newest_valid(folder: Path) -> Path | None:
    """Return the newest checkpoint that is whole; a warning names each one that is not."""
    tidy(folder)
    found = numbers(folder)
    for number in reversed(found):
        path = folder / f"{number:08d}"
        try:
            verified(path)
        except CheckpointError as wrong:
            warnings.warn(f"skipped checkpoint {number}: {wrong}", SparringWarning, stacklevel=2)
        else:
            return path
    if found:
        raise CheckpointError(
            f"none of the {len(found)} checkpoints in {folder} is whole; start again with "
            "`sparring train`, or restore the folder from a backup"
        )
    return None


def prune(folder: Path, *, keep: int, always: Collection[int] = ()) -> list[int]:
    """Remove all but the newest `keep` checkpoints and those in `always`; return what went."""
    if keep < 1:
        raise CheckpointError(f"keep {keep} must be at least 1, or a crash loses the run")
    removed = [number for number in numbers(folder)[:-keep] if number not in always]
    for number in removed:
        with suppress(FileNotFoundError):
            remove_folder(folder / f"{number:08d}")
    return removed


def set_aside(folder: Path, *, after: int) -> list[int]:
    """Rename the damaged checkpoints behind one that a run goes on from.

    Under their own numbers they would count as the newest and be kept in place of whole ones.
    """
    newer = [number for number in numbers(folder) if number > after]
    passed = [number for number in newer if not is_whole(folder / f"{number:08d}")]
    for number in passed:
        aside = folder / f"{DAMAGED}{number:08d}"
        shutil.rmtree(aside, ignore_errors=True)
        (folder / f"{number:08d}").rename(aside)
    return passed


def tidy(folder: Path) -> None:
    """Remove what killed saves left, unless a save is under way or the folder is read-only."""
    if folder.is_dir():
        with suppress(OSError), locked(folder / LOCK) as held:
            if held:
                sweep(folder)


def sweep(folder: Path) -> None:
    """Remove unfinished folders. Who holds the lock knows that none of them has a writer."""
    for path in folder.glob(f"{TEMP}*"):
        shutil.rmtree(path, ignore_errors=True)
    settle(folder)


def settle(folder: Path) -> None:
    """Put a checkpoint back whose successor did not arrive; remove it if that one did."""
    for old in folder.glob(f"{OLD}*"):
        successor = folder / old.name.removeprefix(OLD)
        if successor.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(successor)


class BackgroundSaver:
    """Saves in a thread of its own. Training waits for the copy, not for the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._running: Future[Path] | None = None
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
    ) -> None:
        """Copy what is to be saved and return. The save before must be done: that is waited for.

        If that one failed, its CheckpointError is raised here and nothing new is saved.
        """
        if self._closed:
            raise CheckpointError("the saver is closed; make a new one")
        self.wait()
        checkpoint = copied(number, tensors, blobs, meta)
        self._running = self._writer.submit(self._write, checkpoint)

    def _write(self, checkpoint: Checkpoint) -> Path:
        path = write(self.folder, checkpoint)
        self.saved = checkpoint.number
        return path

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
