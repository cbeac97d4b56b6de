"""Where the last checkpoint of a run goes whose own disk is full."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparring.learn.learner import Snapshot
from sparring.store import checkpoint as checkpoints


def save_elsewhere(run: str, snapshot: Snapshot, meta: Mapping[str, Any]) -> Path | None:
    """Save a checkpoint on another disk; returns its folder, None if no disk took it."""
    for folder in (Path(tempfile.gettempdir()), Path.home(), Path.cwd()):
        place: Path | None = None
        try:
            place = Path(tempfile.mkdtemp(prefix=f"sparring-{run}-", dir=folder))
            return checkpoints.save(
                place,
                snapshot.meta["update"],
                tensors=snapshot.tensors,
                blobs=snapshot.blobs,
                meta=dict(meta),
                segments=snapshot.segments,
                alone=True,
            )
        except (checkpoints.CheckpointError, OSError):
            if place:
                shutil.rmtree(place, ignore_errors=True)
    return None


def where_it_lies(elsewhere: Path | None, home: Path) -> str:
    """Say where a checkpoint is that its run's own disk did not take."""
    if elsewhere is None:
        return "no other place took it either: it is lost when this program ends"
    return (
        f"it lies in {elsewhere} instead: once there is space, move it to {home} to go on from it"
    )
