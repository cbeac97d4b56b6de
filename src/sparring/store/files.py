"""Atomic writes, safe reads of untrusted files, and file locks."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

TEMP = ".tmp-"
"""Prefix of unfinished files and folders."""
STALE_S = 3600.0
"""Age at which an unfinished file counts as abandoned."""
POLL_S = 0.02
MAX_BYTES = 64 * 2**20
"""Default limit of `read_regular`, far above any text file of a run."""
READ_FLAGS = os.O_RDONLY
for _flag in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"):  # the first two of Unix, the last of Windows
    READ_FLAGS |= getattr(os, _flag, 0)
LOCKED_BYTE = 2**30
"""Byte that Windows locks: nobody else can read it, so it lies behind the content."""
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def temp_name(name: str) -> str:
    """Return a unique name for an unfinished file or folder."""
    return f"{TEMP}{name}-{secrets.token_hex(4)}"


def write_file(path: Path, data: bytes) -> None:
    """Write a new file and sync it to the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def read_regular(path: Path, max_bytes: int = MAX_BYTES, *, within: Path | None = None) -> bytes:
    """Return the content of an untrusted file without blocking.

    Raises OSError for directories, FIFOs, sockets, devices and files above `max_bytes`, before
    anything is read. A file that grows meanwhile is read up to its size at the start.
    within: folder that symlinks must not leave.
    """
    if within is not None:
        check_inside(path, within)
    with _invalid_names_as_os_errors(path):
        handle = os.open(path, READ_FLAGS)
    try:
        size = _regular_size(path, os.fstat(handle), max_bytes)
        parts = []
        while size and (part := os.read(handle, size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def check_regular(path: Path, max_bytes: int, *, within: Path | None = None) -> int:
    """Return the size of a file that another library will open; raises as `read_regular`."""
    if within is not None:
        check_inside(path, within)
    with _invalid_names_as_os_errors(path):
        return _regular_size(path, path.stat(), max_bytes)


def _regular_size(path: Path, status: os.stat_result, max_bytes: int) -> int:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if status.st_size > max_bytes:
        raise OSError(
            errno.EFBIG, f"{status.st_size} bytes, at most {max_bytes} are read", str(path)
        )
    return status.st_size


def check_inside(path: Path, folder: Path) -> None:
    """Raise PermissionError if a path leaves a folder, by symlinks or by `..`."""
    with _invalid_names_as_os_errors(path):
        is_inside = path.resolve().is_relative_to(folder.resolve())
    if not is_inside:
        raise PermissionError(errno.EACCES, f"a link that leaves {folder}", str(path))


def check_no_outside_links(folder: Path, *, besides: Collection[str] = ()) -> None:
    """Raise OSError if a folder holds symlinks that leave it, FIFOs, sockets or devices.

    besides: direct subfolders that are not checked.
    """
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:  # another process has just removed it
                continue
            if stat.S_ISLNK(mode):
                check_inside(path, folder)
            elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise OSError(errno.EINVAL, "not a regular file", str(path))
        if Path(parent) == folder:
            folders[:] = [name for name in folders if name not in besides]


@contextmanager
def _invalid_names_as_os_errors(path: Path) -> Iterator[None]:
    """Raise OSError for the ValueError and RuntimeError of Python's path functions."""
    try:
        yield
    except ValueError:  # a zero byte or a lone surrogate
        raise OSError(errno.EINVAL, "not a valid file name", repr(path)) from None
    except RuntimeError:
        raise OSError(errno.ELOOP, "a cycle of symlinks", str(path)) from None


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to the disk; Windows does that by itself."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot sync a folder; there the rename itself is synchronous.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def write_atomic(path: Path, data: bytes) -> None:
    """Replace a file atomically: readers see the old content or the new one."""
    temp = path.with_name(temp_name(path.name))
    try:
        write_file(temp, data)
        temp.replace(path)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def remove_stale_files(folder: Path) -> None:
    """Remove unfinished files of processes that died."""
    for path in folder.glob(f"{TEMP}*"):
        with suppress(OSError):
            if path.is_file() and time.time() - path.stat().st_mtime > STALE_S:
                path.unlink()


def remove_folder(folder: Path) -> None:
    """Remove a folder atomically for readers: rename it first, then delete its files."""
    renamed = folder.with_name(temp_name(folder.name))
    folder.rename(renamed)
    shutil.rmtree(renamed, ignore_errors=True)


def link_or_copy(file: Path, other: Path) -> None:
    """Hard-link or copy an immutable file; one that is removed meanwhile is skipped."""
    with suppress(FileNotFoundError, FileExistsError):
        try:
            os.link(file, other)
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError:  # another disk, or a file system without hard links
            shutil.copyfile(file, other)


@contextmanager
def locked(path: Path, *, wait_s: float = 0.0) -> Iterator[bool]:
    """Hold a lock file; the system releases it when the process dies.

    Yields False if the file system has no locks. Raises BlockingIOError if it is already locked.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        yield _acquire(handle, time.monotonic() + wait_s)
    finally:
        os.close(handle)


def try_lock(handle: int, *, shared: bool = False) -> None:
    """Lock an open file; raise BlockingIOError if another process has locked it."""
    if sys.platform == "win32":
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None
    else:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def _acquire(handle: int, deadline: float) -> bool:
    while True:
        try:
            try_lock(handle)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(POLL_S)
        except OSError as error:
            if error.errno in NO_LOCKS:
                return False
            raise
