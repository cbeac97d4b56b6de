"""Files and folders that a command is to write. Whether it can is known before any work is done."""

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
    """Return the file that is to be written; one that cannot be is refused, nothing is left.

    option: what the file was given for, such as --out; errors begin with it.
    suffixes: how its name may end; left out, in any way.
    new: it must not be there yet.
    parents: folders above it are made when it is written.
    """
    target, said = Path(path), f"{option} {path}".strip()
    if suffixes and target.suffix not in suffixes:
        *others, last = suffixes
        known = f"{', '.join(others)} or {last}" if others else last
        raise ConfigError(f"{said} has to end in {known}")
    if _is_there(target, said):
        if target.is_dir():
            raise ConfigError(f"{said} is a folder; give a file in it")
        if new:
            raise ConfigError(f"{said} is there already; give another name, or remove it first")
        if not target.is_file():
            raise ConfigError(f"{said} is no file that could be replaced; give another name")
    if not parents and not target.parent.is_dir():
        raise ConfigError(
            f"{said} cannot be written: there is no folder {target.parent}; make it first"
        )
    _try_writing(target.parent, said)
    return target


def check_folder(path: str | Path, option: str) -> Path:
    """Return the folder that files are to be written into; it and those above it may be missing."""
    folder, said = Path(path), f"{option} {path}".strip()
    _try_writing(folder, said)
    return folder


@contextmanager
def writing(what: object, option: str) -> Iterator[None]:
    """Say why something could not be written, and by which option another place is chosen."""
    try:
        yield
    except OSError as wrong:
        raise SparringError(
            f"cannot write {what}: {wrong.strerror or wrong}; choose another with {option}"
        ) from wrong


def _is_there(path: Path, said: str) -> bool:
    try:
        path.stat()
        return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as wrong:  # a closed folder, a name that no file can have
        why = getattr(wrong, "strerror", "") or wrong
        raise ConfigError(f"{said} cannot be written: {why}; choose another name") from None


def _try_writing(folder: Path, said: str) -> None:
    """Make a file without a name in a folder, or in the nearest that exists above it.

    Permissions alone say too little: some systems of files take none from anybody.
    """
    near = next(one for one in (folder, *folder.absolute().parents) if _is_there(one, said))
    if not near.is_dir():
        raise ConfigError(f"{said}: {near} is no folder; choose another place")
    try:
        tempfile.TemporaryFile(dir=near).close()
    except OSError as wrong:
        why = f"no file can be made in {near} ({wrong.strerror or wrong})"
        raise ConfigError(f"{said} cannot be written: {why}; choose another place") from None
