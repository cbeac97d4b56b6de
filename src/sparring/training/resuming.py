"""Checkpoints that a run goes on from, and where the last one goes if the run's disk is full."""

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
from sparring.store.checkpoint import Checkpoint, CheckpointError, is_whole
from sparring.store.folders import BEST, CHECKPOINTS
from sparring.store.manifest import advice
from sparring.store.plain import (
    anything,
    finite,
    listed,
    named,
    number,
    perhaps,
    table,
    text,
    whole,
    word,
)
from sparring.store.policy_shape import CUSTOM, check_custom
from sparring.store.tensors import check_same
from sparring.training.records.overview import read_json

A_RUN = table(
    {
        "config": named(anything),
        "update": whole(),
        "decisions": whole(),
        "samples": whole(),
        "seconds": finite,
        "best": table({"update": whole(-1), "strength": number}),
        "events": listed(named(anything)),
        "wins": named(anything),
    },
    {
        "total_updates": whole(),
        "episodes": whole(),
        "dry": whole(),
        "evaluated": whole(-1),
        "opponent_rows": whole(),
        "rollouts": whole(),
        "steps": whole(),
        "owed": finite,
        "since": whole(),
        "finished": whole(),
        "bonus_since": whole(),
        "replay": table({"first": whole(), "head": whole()}, {"highest": whole(0, 2**32 - 1)}),
        "lr_factor": finite,
        "first": named(anything),
        "waiting": named(number, word(r"\d{1,18}", "the number of a checkpoint")),
        "foreign": CUSTOM,
        "league": perhaps(table({"home": word(r"\w[\w.+-]*", "the name of a run")})),
        "course": perhaps(table({"phase": whole(), "name": text})),
    },
)
"""What the loop reads of a checkpoint; its learner, league and course read more."""
ODD = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def check_resumable(path: Path, saved: Checkpoint) -> None:
    """Refuse a checkpoint that does not say how far its run had come."""
    try:
        A_RUN(saved.meta, "")
        if "foreign" in saved.meta:
            check_custom(saved.meta["foreign"])
    except ValueError as wrong:
        raise CheckpointError(f"{path} cannot be gone on from: {wrong}; {advice(path)}") from wrong


def check_weights(learner: Learner, saved: Checkpoint) -> None:
    """Refuse weights that are not those of the learner's network."""
    net = learner.policy().net
    if isinstance(net, Net):
        check_same(net.state_dict(), saved.tensors["net"])


def better_on_disk(run: Path, best: Mapping[str, float], *, until: int) -> tuple[int, float] | None:
    """Number and strength of a best checkpoint, up to `until`, found after `best` was saved."""
    found = read_json(run / BEST)
    named = found if isinstance(found, dict) else {}
    number, strength = named.get("checkpoint"), named.get("strength")
    if type(number) is not int or type(strength) is not float or not math.isfinite(strength):
        return None
    better = best["update"] < 0 or strength > best["strength"]
    folder = run / CHECKPOINTS / f"{number:08d}"
    if better and 0 <= number <= until and is_whole(folder, segments=False):
        return number, strength
    return None


@contextmanager
def going_on(saved: Checkpoint | None, run: Path) -> Iterator[None]:
    """Say in one line that what learners and leagues left in a checkpoint is not what they left."""
    try:
        yield
    except (SparringError, MemoryError):
        raise
    except ODD as wrong:
        if saved is None or "memory" in str(wrong):
            raise
        first = (str(wrong).splitlines() or [""])[0]
        raise CheckpointError(
            f"checkpoint {saved.number} of {run} cannot be gone on from: {type(wrong).__name__}: "
            f"{first}; {advice(run / 'checkpoints' / f'{saved.number:08d}')}"
        ) from wrong


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
