"""Where runs lie, and which one a user means."""

from __future__ import annotations

import difflib
import stat
from contextlib import suppress
from pathlib import Path

from sparring.errors import ConfigError

CONFIG = "config.toml"
"""The file that makes a folder a run."""
CHECKPOINTS = "checkpoints"
LEAGUE = "league"
"""Where the files of a run's snapshots are, by the hash of their bytes."""
RUNS = Path("runs")
"""Where runs are looked for by name."""
LATEST = "latest"
SNAPSHOT = ".safetensors"
"""How the name of a frozen network's file ends."""


def shown_path(path: Path) -> Path:
    """A path as people read and type it: from the folder that they are in, if it lies there."""
    with suppress(OSError):
        here = Path.cwd()
        return path.relative_to(here) if path.is_relative_to(here) else path
    return path


def find(path: Path, root: Path) -> Path:
    """Return the folder that is meant; an error names what there is instead."""
    if path.is_dir():
        return path
    within = path.parent if len(path.parts) > 1 else root
    runs = sorted_runs(within)
    if path.name == LATEST and runs:
        return ([run for run in runs if holds_checkpoint(run)] or runs)[-1]
    found = [run for run in runs if run.name.startswith(path.name)]
    exact = [run for run in found if run.name == path.name]
    if len(exact or found) == 1:
        return (exact or found)[0]
    names = [run.name for run in reversed(found or runs)]
    if found:
        raise ConfigError(f"{len(found)} runs begin with {path.name!r}: {shortened(names)}")
    if not names:
        raise ConfigError(f"no run {str(path)!r}: {within} holds none; `sparring train` makes one")
    close = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {shortened(names)}"
    raise ConfigError(f"no run {str(path)!r} in {within}; {hint}")


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


def holds_checkpoint(run: Path) -> bool:
    """Whether something was trained here: a run that failed before that is never the latest."""
    return any((run / CHECKPOINTS).glob("[0-9]*/manifest.json"))


def shortened(names: list[str], most: int = 5) -> str:
    """List some names, and say how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
