"""The folder of runs: the only folder whose files requests can name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sparring.store.folders import CHECKPOINTS, is_folder
from sparring.training.records.overview import is_run
from sparring.web.responses import ConflictError, NotFoundError, reading_files

MANIFEST = "manifest.json"
"""Defined here, because the module of the store's constant imports torch."""
NUMBER = re.compile(r"[0-9]{1,12}")
"""Name of a checkpoint's folder."""
MAX_CHECKPOINTS = 500
"""Listed per run."""
MAX_NAME_BYTES = 255
"""Limit of file systems."""


class RunsFolder:
    """A folder of runs. Neither names nor symlinks lead out of it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, name: str) -> Path:
        """Return a run's folder; raise NotFoundError if there is none."""
        path = self.child(name)
        with reading_files(quoted(name)):
            if not is_folder(path) or not is_run(path):
                raise NotFoundError(f"no run {quoted(name)}; /api/runs lists them")
            self.check_links(path)
        return path

    def checkpoint(self, run: Path, number: int) -> Path:
        path = run / CHECKPOINTS / f"{number:08d}"
        if not is_folder(path):
            raise NotFoundError(f"{run.name} has no checkpoint {number}")
        if not self.contains(path):
            raise ConflictError(f"checkpoint {number} of {run.name} is a link out of the folder")
        self.check_links(path)
        return path

    def child(self, name: str) -> Path:
        """Return the path of a name directly in the folder."""
        if not is_name(name):
            raise NotFoundError(f"no run {quoted(name)}; /api/runs lists them")
        path = self.root / name
        if not self.contains(path):
            raise ConflictError(f"{quoted(name)} is a link out of the folder of runs")
        return path

    def contains(self, path: Path) -> bool:
        """Whether a path lies in the folder after its symlinks are resolved."""
        try:
            return path.resolve().is_relative_to(self.root.resolve())
        except (OSError, RuntimeError, ValueError):  # circular links, invalid characters
            return False

    def check_links(self, folder: Path) -> None:
        """Reject a folder that contains a link out of the folder of runs."""
        with os.scandir(folder) as entries:
            outside = any(e.is_symlink() and not self.contains(Path(e.path)) for e in entries)
        if outside:
            raise ConflictError(f"{quoted(folder.name)} contains a link out of the folder of runs")


def list_checkpoints(run: Path) -> list[tuple[int, Path]]:
    """Return (number, folder) of a run's checkpoints, newest first."""
    folders = (run / CHECKPOINTS).glob("[0-9]*")
    checkpoints = sorted((int(p.name), p) for p in folders if NUMBER.fullmatch(p.name))
    return checkpoints[: -MAX_CHECKPOINTS - 1 : -1]


def is_name(name: str) -> bool:
    """Whether this is the name of a visible file, without path separators."""
    if not name or name.startswith(".") or any(char in name for char in ("/", "\\", "\0")):
        return False
    return len(name.encode("utf-8", "replace")) <= MAX_NAME_BYTES


def quoted(name: str) -> str:
    return ascii(name if len(name) <= 60 else f"{name[:60]}...")
