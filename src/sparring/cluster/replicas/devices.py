"""Data-parallel PPO on several GPUs: one process for each, with its share of the games.

The first process is the run's learner. Reports are those of all games already, and a checkpoint is
that of one learner with all games: a run goes on with any number of GPUs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from sparring.cluster.replicas import replica
from sparring.cluster.replicas.learner import ReplicatedPPO
from sparring.errors import StateError
from sparring.learn.learner import Report, Snapshot
from sparring.learn.transitions import PENDING_DTYPE
from sparring.messages import Message
from sparring.pools.slices import join_states, saved_games, slice_state

GAMES, PENDING, ROWS = "games.bin", "open.bin", "carried"
"""Parts of a snapshot that have the games of one process."""
WEIGHTS = "weights"
"""Hash of the weights, in what a process reports of its state."""


class DeviceReplicas(ReplicatedPPO):
    """The first of several processes with a GPU each."""

    ppo: Any
    """A `FusedPPO`."""

    def abandon(self) -> None:
        """Go back to the state before an update that did not end."""
        self.ppo.undo()

    def _merged(self, report: Report, replies: Sequence[Message]) -> Report:
        return report

    def snapshot(self, member: int = 0) -> Snapshot:
        """Save the learner and the games of all processes, as one process with all would.

        If a process has ended, no games are saved.
        """
        saved: Snapshot = self.ppo.snapshot()
        if self._broken or GAMES not in saved.blobs:
            return replace(saved, blobs={})
        others = [replica.unpacked(reply) for reply in self.call(Message(replica.STATE))]
        mine = fingerprint(self.ppo)
        for rank, other in enumerate(others, 1):
            if other.meta[WEIGHTS] != mine:
                raise StateError(
                    f"replica {rank} has other weights than the first; please report this"
                )
        return join_snapshots([saved, *others], self.ppo.rules.seats)

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Restore all processes from a snapshot, of however many."""
        seats, games = self.ppo.rules.seats, self.ppo.games.each
        mine, *theirs = (
            slice_snapshot(snapshot, seats, rank * games, games)
            for rank in range(len(self.others) + 1)
        )
        for other, part in zip(self.others, theirs, strict=True):
            other.send(replica.packed(replica.RESTORE, part))
        self.ppo.restore(mine)
        self._replies()


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
