"""Names of files in a run's folder, and the list of runs."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

CONFIG = "config.toml"
"""A folder with this file is a run."""
BEST = "best.json"
"""Names the best checkpoint of a run."""
CHECKPOINTS = "checkpoints"
MANIFEST = "manifest.json"
"""A folder with this file is a checkpoint or a saved policy."""
MADE_BY_FILE = "made_by.json"
"""Marks a run that a command started, not a person."""
IMITATED_POLICY = "imitated"
"""Folder of the policy from imitation, if the run began with it."""
LEAGUE = "league"
"""Folder of a run's snapshots; files are named by their hash."""
RUNS = Path("runs")
"""Default folder of runs."""
LATEST = "latest"
SNAPSHOT = ".safetensors"
"""Suffix of a snapshot's file."""
SB3_MODEL = ".zip"
"""Suffix of a model of Stable-Baselines3."""


def display_path(path: Path) -> Path:
    """Return a path relative to the current folder if it lies there."""
    with suppress(OSError):
        cwd = Path.cwd()
        return path.relative_to(cwd) if path.is_relative_to(cwd) else path
    return path


def mode_of(path: Path) -> int:
    """Return the `st_mode` of a path; 0 if it is missing or not accessible.

    `Path.is_file` and `is_dir` raise for too long names and unreadable folders.
    """
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def is_file(path: Path) -> bool:
    return stat.S_ISREG(mode_of(path))


def is_folder(path: Path) -> bool:
    return stat.S_ISDIR(mode_of(path))


def sorted_runs(root: Path) -> list[Path]:
    """Return the runs in a folder by the date of their configuration, the newest last."""
    dated = []
    for config in root.glob(f"*/{CONFIG}"):
        with suppress(OSError):
            dated.append((config.stat().st_mtime_ns, config.parent))
    return [path for _, path in sorted(dated)]


def latest_run(root: Path) -> Path | None:
    """Return the newest run that a person started, None without any.

    Runs without a checkpoint count only if no other run has one.
    """
    runs = [run for run in sorted_runs(root) if not (run / MADE_BY_FILE).exists()]
    return next(iter(([run for run in runs if has_checkpoint(run)] or runs)[-1:]), None)


def has_checkpoint(run: Path) -> bool:
    return any((run / CHECKPOINTS).glob(f"[0-9]*/{MANIFEST}"))


def join_names(names: list[str], limit: int = 5) -> str:
    """Join the first names, and add how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
