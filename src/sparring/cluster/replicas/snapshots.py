"""Parts of a snapshot of several GPUs: that of one process with all games, cut and joined again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from sparring.learn.learner import GAMES, PENDING, Snapshot
from sparring.learn.transitions import PENDING_DTYPE
from sparring.pools.slices import join_states, saved_games, slice_state

ROWS = "carried"
"""Tensors of a snapshot: rows of decisions that are not samples yet."""
WEIGHTS = "weights"
"""Hash of the weights, in what a process reports of its state."""


def state_of(learner: Any) -> Snapshot:
    """The games of one process."""
    rows, pending = learner.rollout.pending_state(0)
    blobs = {GAMES: learner.games.state(0), PENDING: pending}
    return Snapshot({ROWS: rows}, blobs, {WEIGHTS: fingerprint(learner)})


def fingerprint(learner: Any) -> str:
    """Return a hash of everything that updates change, which is the same in all processes."""
    kept = (one for update in learner.learners.values() for one in update.kept())
    found = hashlib.sha256()
    for tensor in kept:
        found.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy())
    return found.hexdigest()


def join_snapshots(parts: Sequence[Snapshot], seats: int) -> Snapshot:
    """Return the snapshot of one process with all games. parts: the first is whole, by rank."""
    rows = {
        name: torch.cat([part.tensors[ROWS][name] for part in parts])
        for name in parts[0].tensors[ROWS]
    }
    count = len(parts[0].blobs[PENDING]) // PENDING_DTYPE.itemsize
    pending = [moved(part.blobs[PENDING], rank * count) for rank, part in enumerate(parts)]
    blobs = {
        **parts[0].blobs,
        GAMES: join_states([part.blobs[GAMES] for part in parts], seats),
        PENDING: b"".join(pending),
    }
    return replace(parts[0], tensors={**parts[0].tensors, ROWS: rows}, blobs=blobs)


def slice_snapshot(snapshot: Snapshot, seats: int, first: int, games: int) -> Snapshot:
    """Return the snapshot of a process with some of the games, `games` from `first` on."""
    if GAMES not in snapshot.blobs:
        return snapshot
    raw, size = snapshot.blobs[PENDING], PENDING_DTYPE.itemsize
    each = len(raw) // size // saved_games(snapshot.blobs[GAMES])
    at = slice(first * each, (first + games) * each)
    blobs = {
        **snapshot.blobs,
        GAMES: slice_state(snapshot.blobs[GAMES], seats, first, games),
        PENDING: moved(raw[at.start * size : at.stop * size], -at.start),
    }
    rows = {name: array[at] for name, array in snapshot.tensors[ROWS].items()}
    return replace(snapshot, tensors={**snapshot.tensors, ROWS: rows}, blobs=blobs)


def moved(pending: bytes, by: int) -> bytes:
    """Return pending transitions whose rows are at other places."""
    found = np.frombuffer(pending, PENDING_DTYPE).copy()
    found["row"][found["row"] >= 0] += by
    return found.tobytes()
