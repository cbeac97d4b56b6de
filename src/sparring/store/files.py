"""Files that are there whole or not at all, and reading of those that nobody vouches for."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMP = ".tmp-"
"""How the names of unfinished files and folders begin."""
STALE_S = 3600.0
"""Age after which an unfinished small file has no writer any more."""
POLL_S = 0.02
MAX_BYTES = 64 * 2**20
"""What `read_regular` reads at most, unless it is told otherwise: far above any file of texts."""
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def temp_name(name: str) -> str:
    """Return a name for an unfinished file or folder that nobody else has."""
    return f"{TEMP}{name}-{secrets.token_hex(4)}"


def write_file(path: Path, data: bytes) -> None:
    """Write a new file and wait until it is on the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def read_regular(path: Path, most: int = MAX_BYTES, *, within: Path | None = None) -> bytes:
    """Return the content of a file that somebody else may have put there; it never blocks.

    Directories, FIFOs, sockets, devices and files above `most` bytes are an OSError before anything
    is read. A file that grows meanwhile is read up to the size that it had.
    within: the folder that links must not lead out of.
    """
    if within is not None:
        check_inside(path, within)
    with _invalid_names_as_os_errors(path):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        size = _regular_size(path, os.fstat(handle), most)
        parts = []
        while size and (part := os.read(handle, size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def check_regular(path: Path, most: int, *, within: Path | None = None) -> int:
    """Return the size of a file that another library is to open; OSError as `read_regular`."""
    if within is not None:
        check_inside(path, within)
    with _invalid_names_as_os_errors(path):
        return _regular_size(path, path.stat(), most)


def _regular_size(path: Path, known: os.stat_result, most: int) -> int:
    if stat.S_ISDIR(known.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(known.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if known.st_size > most:
        raise OSError(errno.EFBIG, f"{known.st_size} bytes, at most {most} are read", str(path))
    return known.st_size


def check_inside(path: Path, folder: Path) -> None:
    """Raise a PermissionError if a path leads out of a folder, by links or by `..`."""
    with _invalid_names_as_os_errors(path):
        is_inside = path.resolve().is_relative_to(folder.resolve())
    if not is_inside:
        raise PermissionError(errno.EACCES, f"a link that leaves {folder}", str(path))


def check_no_outside_links(folder: Path, *, besides: Collection[str] = ()) -> None:
    """Raise an OSError if a folder holds what leads a writer elsewhere or stops it.

    That is a link that leaves the folder, a FIFO, a socket or a device.
    besides: folders directly in it that others write, with links as they like.
    """
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:  # somebody else has just removed it
                continue
            if stat.S_ISLNK(mode):
                check_inside(path, folder)
            elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise OSError(errno.EINVAL, "not a regular file", str(path))
        if Path(place) == folder:
            folders[:] = [name for name in folders if name not in besides]


@contextmanager
def _invalid_names_as_os_errors(path: Path) -> Iterator[None]:
    """Make an OSError of what Python raises itself before it asks the system."""
    try:
        yield
    except ValueError:  # a zero byte, or half of a character
        raise OSError(errno.EINVAL, "a name that no file can have", repr(path)) from None
    except RuntimeError:
        raise OSError(errno.ELOOP, "a circle of links", str(path)) from None


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
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
    """Replace a file: readers see the old content or the new one."""
    temp = path.with_name(temp_name(path.name))
    try:
        write_file(temp, data)
        temp.replace(path)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def remove_stale_files(folder: Path) -> None:
    """Remove small files that a process which died left unfinished."""
    for path in folder.glob(f"{TEMP}*"):
        with suppress(OSError):
            if path.is_file() and time.time() - path.stat().st_mtime > STALE_S:
                path.unlink()


def remove_folder(folder: Path) -> None:
    """Remove a folder at once for all readers: it loses its name before its files."""
    doomed = folder.with_name(temp_name(folder.name))
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def link_or_copy(file: Path, other: Path) -> None:
    """Put a file that never changes into another folder; one that went meanwhile is left out."""
    with suppress(FileNotFoundError, FileExistsError):
        try:
            os.link(file, other)
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError:  # another disk, or one without links
            shutil.copyfile(file, other)


@contextmanager
def locked(path: Path, *, wait_s: float = 0.0) -> Iterator[bool]:
    """Hold a lock file; the system frees it when the process dies, however it dies.

    Yields False where the file system has no locks. BlockingIOError: somebody else holds it.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        yield _acquire(handle, time.monotonic() + wait_s)
    finally:
        os.close(handle)


def _acquire(handle: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(POLL_S)
        except OSError as error:
            if error.errno in NO_LOCKS:
                return False
            raise
