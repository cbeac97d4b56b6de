"""The folder with the runs: the one place on the disk that a visitor can name files in."""

from __future__ import annotations

import os
from pathlib import Path

from sparring.store.folders import CHECKPOINTS
from sparring.training.records.overview import is_run
from sparring.web.answers import MissingError, RefusedError


class Folder:
    """A folder with runs. Names are names: nothing in them leads anywhere else."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, name: str) -> Path:
        """Return a run's folder; an error says that there is none."""
        path = self.inner(name)
        if not path.is_dir() or not is_run(path):
            raise MissingError(f"no run {shown(name)} here; /api/runs lists them")
        self.check_links(path)
        return path

    def checkpoint(self, run: Path, number: int) -> Path:
        """Return a checkpoint of a run."""
        path = run / CHECKPOINTS / f"{number:08d}"
        if not path.is_dir():
            raise MissingError(f"{run.name} has no checkpoint {number}")
        self.check_links(path)
        return path

    def inner(self, name: str) -> Path:
        """Return a path directly in the folder, which nothing in the name or on the disk leaves."""
        if not name or name.startswith(".") or any(mark in name for mark in ("/", "\\", "\0")):
            raise MissingError(f"no run {shown(name)} here; /api/runs lists them")
        path = self.root / name
        if not self.holds(path):
            raise RefusedError(f"{shown(name)} is a link out of the folder with the runs")
        return path

    def holds(self, path: Path) -> bool:
        """Whether a path, links followed, lies in the folder."""
        try:
            return path.resolve().is_relative_to(self.root.resolve())
        except (OSError, RuntimeError):  # links in a circle
            return False

    def check_links(self, folder: Path) -> None:
        """Refuse a folder with a link that leads out of ours."""
        for entry in os.scandir(folder):
            if entry.is_symlink() and not self.holds(Path(entry.path)):
                raise RefusedError(
                    f"{shown(folder.name)} holds a link that leads out of the folder with the runs"
                )


def shown(name: str) -> str:
    """Return a name as an error has it."""
    return ascii(name if len(name) <= 60 else f"{name[:60]}...")
