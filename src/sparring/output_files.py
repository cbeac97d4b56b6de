"""Checks that files and folders can be written, before a command starts its work."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sparring.errors import ConfigError, SparringError


def check_file(
    path: str | Path,
    option: str,
    *,
    suffixes: Sequence[str] = (),
    new: bool = False,
    parents: bool = False,
) -> Path:
    """Return the path of a file to write; refuse one that cannot be written.

    option: what the file is for, such as --out; errors begin with it.
    suffixes: allowed endings; by default any.
    new: the file must not exist.
    parents: missing folders are made later.
    """
    target, label = Path(path), f"{option} {path}".strip()
    if suffixes and target.suffix not in suffixes:
        *others, last = suffixes
        known = f"{', '.join(others)} or {last}" if others else last
        raise ConfigError(f"{label} has to end in {known}")
    if _exists(target, label):
        if target.is_dir():
            raise ConfigError(f"{label} is a folder; give a file in it")
        if new:
            raise ConfigError(f"{label} is there already; give another name, or remove it first")
        if not target.is_file():
            raise ConfigError(f"{label} is no file that could be replaced; give another name")
    if not parents and not target.parent.is_dir():
        raise ConfigError(
            f"{label} cannot be written: there is no folder {target.parent}; make it first"
        )
    _try_writing(target.parent, label)
    return target


def check_folder(path: str | Path, option: str) -> Path:
    """Return a folder to write into; it and its parents may be missing."""
    folder, label = Path(path), f"{option} {path}".strip()
    _try_writing(folder, label)
    return folder


@contextmanager
def writing(what: object, option: str) -> Iterator[None]:
    """Report why something could not be written, and the option that chooses another path."""
    try:
        yield
    except OSError as wrong:
        raise SparringError(
            f"cannot write {what}: {wrong.strerror or wrong}; choose another with {option}"
        ) from wrong


def _exists(path: Path, label: str) -> bool:
    try:
        path.stat()
        return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as wrong:  # an unreadable folder, an invalid name
        why = getattr(wrong, "strerror", "") or wrong
        raise ConfigError(f"{label} cannot be written: {why}; choose another name") from None


def _try_writing(folder: Path, label: str) -> None:
    """Make a temporary file in a folder, or in its nearest existing parent.

    Permissions alone do not tell: some file systems refuse all writes.
    """
    near = next(one for one in (folder, *folder.absolute().parents) if _exists(one, label))
    if not near.is_dir():
        raise ConfigError(f"{label}: {near} is no folder; choose another place")
    try:
        tempfile.TemporaryFile(dir=near).close()
    except OSError as wrong:
        why = f"no file can be made in {near} ({wrong.strerror or wrong})"
        raise ConfigError(f"{label} cannot be written: {why}; choose another place") from None
