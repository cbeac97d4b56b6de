"""Checks of checkpoints before a resume, and saving elsewhere if the run's disk is full."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparring.errors import SparringError
from sparring.learn.learner import Learner, Snapshot
from sparring.nets.net import Net
from sparring.store import checkpoint as checkpoints
from sparring.store.checkpoint import Checkpoint, CheckpointError, is_valid
from sparring.store.folders import BEST, CHECKPOINTS
from sparring.store.manifest import suggest_older
from sparring.store.policy_schema import CUSTOM, check_custom
from sparring.store.schema import (
    any_value,
    finite_number,
    integer,
    list_of,
    mapping_of,
    number,
    object_with,
    optional,
    string,
    string_matching,
)
from sparring.store.tensors import check_same_tensors
from sparring.training.records.overview import read_json

A_RUN = object_with(
    {
        "config": mapping_of(any_value),
        "update": integer(),
        "decisions": integer(),
        "samples": integer(),
        "seconds": finite_number,
        "best": object_with({"update": integer(-1), "strength": number}),
        "events": list_of(mapping_of(any_value)),
        "wins": mapping_of(any_value),
    },
    {
        "total_updates": integer(),
        "episodes": integer(),
        "dry": integer(),
        "evaluated": integer(-1),
        "opponent_rows": integer(),
        "rollouts": integer(),
        "steps": integer(),
        "owed": finite_number,
        "since": integer(),
        "finished": integer(),
        "bonus_since": integer(),
        "replay": object_with(
            {"first": integer(), "head": integer()}, {"highest": integer(0, 2**32 - 1)}
        ),
        "lr_factor": finite_number,
        "first": mapping_of(any_value),
        "waiting": mapping_of(number, string_matching(r"\d{1,18}", "the number of a checkpoint")),
        "foreign": CUSTOM,
        "league": optional(
            object_with({"home": string_matching(r"\w[\w.+-]*", "the name of a run")})
        ),
        "course": optional(object_with({"phase": integer(), "name": string})),
    },
)
"""Metadata that the training loop reads from a checkpoint."""
ODD = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def check_resumable(path: Path, saved: Checkpoint) -> None:
    """Raise an error for a checkpoint whose metadata cannot be resumed from."""
    try:
        A_RUN(saved.meta, "")
        if "foreign" in saved.meta:
            check_custom(saved.meta["foreign"])
    except ValueError as error:
        raise CheckpointError(
            f"{path} cannot be resumed: {error}; {suggest_older(path)}"
        ) from error


def check_weights(learner: Learner, saved: Checkpoint) -> None:
    """Raise an error for weights that do not fit the learner's network."""
    net = learner.policy().net
    if isinstance(net, Net):
        check_same_tensors(net.state_dict(), saved.tensors["net"])


def better_saved_checkpoint(
    run: Path, best: Mapping[str, float], *, until: int
) -> tuple[int, dict[str, float]] | None:
    """Number and measurements of a best checkpoint, up to `until`, found after `best` was saved."""
    found = read_json(run / BEST)
    named = found if isinstance(found, dict) else {}
    number = named.pop("checkpoint", None)
    finite = [type(one) is float and math.isfinite(one) for one in named.values()]
    if type(number) is not int or "strength" not in named or not all(finite):
        return None
    better = number > best["update"]
    folder = run / CHECKPOINTS / f"{number:08d}"
    if better and 0 <= number <= until and is_valid(folder, segments=False):
        return number, named
    return None


@contextmanager
def going_on(saved: Checkpoint | None, run: Path) -> Iterator[None]:
    """Say in one line that what learners and leagues left in a checkpoint is not what they left."""
    try:
        yield
    except (SparringError, MemoryError):
        raise
    except ODD as error:
        if saved is None or "memory" in str(error):
            raise
        first = (str(error).splitlines() or [""])[0]
        raise CheckpointError(
            f"checkpoint {saved.number} of {run} cannot be resumed: {type(error).__name__}: "
            f"{first}; {suggest_older(run / 'checkpoints' / f'{saved.number:08d}')}"
        ) from error


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
                standalone=True,
            )
        except (checkpoints.CheckpointError, OSError):
            if place:
                shutil.rmtree(place, ignore_errors=True)
    return None


def saved_elsewhere_text(elsewhere: Path | None, home: Path) -> str:
    """Say where a checkpoint was saved that did not fit on its run's disk."""
    if elsewhere is None:
        return "it could not be saved elsewhere either: it is lost when this program ends"
    return f"it was saved in {elsewhere} instead: once there is space, move it to {home} to resume"
