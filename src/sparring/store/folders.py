"""Where runs lie, and what makes a folder one."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

CONFIG = "config.toml"
"""The file that makes a folder a run."""
BEST = "best.json"
"""The file of a run that names its best checkpoint."""
CHECKPOINTS = "checkpoints"
MANIFEST = "manifest.json"
"""The file that makes a folder a checkpoint, or a policy of its own."""
MADE_BY_FILE = "made_by.json"
"""The file of a run that no person began: a command made it for itself."""
IMITATED_POLICY = "imitated"
"""The policy that was cloned before the run played, where one was."""
LEAGUE = "league"
"""Where the files of a run's snapshots are, by the hash of their bytes."""
RUNS = Path("runs")
"""Where runs are looked for by name."""
LATEST = "latest"
SNAPSHOT = ".safetensors"
"""How the name of a frozen network's file ends."""


def display_path(path: Path) -> Path:
    """A path as people read and type it: from the folder that they are in, if it lies there."""
    with suppress(OSError):
        here = Path.cwd()
        return path.relative_to(here) if path.is_relative_to(here) else path
    return path


def mode_of(path: Path) -> int:
    """Return what a path is, as `stat` has it; 0 where there is nothing that we may see.

    `Path.is_file` and its like raise for names that are too long and folders that are closed.
    """
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def is_file(path: Path) -> bool:
    """Whether a path is a regular file that we may see."""
    return stat.S_ISREG(mode_of(path))


def is_folder(path: Path) -> bool:
    """Whether a path is a folder that we may see."""
    return stat.S_ISDIR(mode_of(path))


def sorted_runs(root: Path) -> list[Path]:
    """Return the runs in a folder; the one that was configured last comes last."""
    dated = []
    for config in root.glob(f"*/{CONFIG}"):
        with suppress(OSError):
            dated.append((config.stat().st_mtime_ns, config.parent))
    return [path for _, path in sorted(dated)]


def latest_run(root: Path) -> Path | None:
    """Return the run that a person began last, None where there is none.

    Those that commands made for themselves do not count, nor those that failed before their first
    checkpoint, unless all did.
    """
    runs = [run for run in sorted_runs(root) if not (run / MADE_BY_FILE).exists()]
    return next(iter(([run for run in runs if has_checkpoint(run)] or runs)[-1:]), None)


def has_checkpoint(run: Path) -> bool:
    """Whether something was trained here."""
    return any((run / CHECKPOINTS).glob(f"[0-9]*/{MANIFEST}"))


def join_names(names: list[str], most: int = 5) -> str:
    """List some names, and say how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
