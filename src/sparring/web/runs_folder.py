"""The folder with the runs: the one place on the disk that a visitor can name files in."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sparring.store.folders import CHECKPOINTS, is_folder
from sparring.training.records.overview import is_run
from sparring.web.responses import ConflictError, NotFoundError, reading_files

MANIFEST = "manifest.json"
"""Named here, because the store's own name for it comes with torch."""
NUMBER = re.compile(r"[0-9]{1,12}")
"""What the folder of a checkpoint is called."""
MAX_CHECKPOINTS = 500
"""Checkpoints of a run; it keeps a few."""
MAX_NAME_BYTES = 255
"""Bytes of a name on any disk."""


class RunsFolder:
    """A folder with runs. Names are names: nothing in them leads anywhere else."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, name: str) -> Path:
        """Return a run's folder; an error says that there is none."""
        path = self.inner(name)
        with reading_files(quoted(name)):
            if not is_folder(path) or not is_run(path):
                raise NotFoundError(f"no run {quoted(name)} here; /api/runs lists them")
            self.check_links(path)
        return path

    def checkpoint(self, run: Path, number: int) -> Path:
        path = run / CHECKPOINTS / f"{number:08d}"
        if not is_folder(path):
            raise NotFoundError(f"{run.name} has no checkpoint {number}")
        if not self.holds(path):
            raise ConflictError(f"checkpoint {number} of {run.name} is a link out of the folder")
        self.check_links(path)
        return path

    def inner(self, name: str) -> Path:
        """Return a path directly in the folder, which nothing in the name or on the disk leaves."""
        if not is_name(name):
            raise NotFoundError(f"no run {quoted(name)} here; /api/runs lists them")
        path = self.root / name
        if not self.holds(path):
            raise ConflictError(f"{quoted(name)} is a link out of the folder with the runs")
        return path

    def holds(self, path: Path) -> bool:
        """Whether a path, links followed, lies in the folder."""
        try:
            return path.resolve().is_relative_to(self.root.resolve())
        except (OSError, RuntimeError, ValueError):  # links in a circle, half a character
            return False

    def check_links(self, folder: Path) -> None:
        """Refuse a folder with a link that leads out of ours."""
        with os.scandir(folder) as entries:
            out = any(one.is_symlink() and not self.holds(Path(one.path)) for one in entries)
        if out:
            raise ConflictError(
                f"{quoted(folder.name)} holds a link that leads out of the folder with the runs"
            )


def list_checkpoints(run: Path) -> list[tuple[int, Path]]:
    """Return the folders of a run's checkpoints with their numbers, the newest first."""
    there = ((one.name, one) for one in (run / CHECKPOINTS).glob("[0-9]*"))
    found = sorted((int(name), path) for name, path in there if NUMBER.fullmatch(name))
    return found[: -MAX_CHECKPOINTS - 1 : -1]


def is_name(name: str) -> bool:
    """Whether a file of that name could lie in a folder, and be shown."""
    if not name or name.startswith(".") or any(mark in name for mark in ("/", "\\", "\0")):
        return False
    return len(name.encode("utf-8", "replace")) <= MAX_NAME_BYTES


def quoted(name: str) -> str:
    return ascii(name if len(name) <= 60 else f"{name[:60]}...")
