"""Data-parallel PPO on several GPUs: one process for each, with its share of the games.

The first process is the run's learner. Reports are those of all games already, and a checkpoint is
that of one learner with all games: a run goes on with any number of GPUs.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sparring.cluster.replicas import replica
from sparring.cluster.replicas.learner import ReplicatedPPO
from sparring.cluster.replicas.snapshots import (
    WEIGHTS,
    fingerprint,
    join_snapshots,
    slice_snapshot,
)
from sparring.errors import StateError
from sparring.learn.learner import GAMES, Report, Snapshot
from sparring.messages import Message

WATCH_S = 0.5
"""Seconds between two looks whether a process has ended."""


class DeviceReplicas(ReplicatedPPO):
    """The first of several processes with a GPU each."""

    inner: Any
    """A `FusedPPO`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._closing = threading.Event()
        threading.Thread(target=self._watch, name="other GPUs", daemon=True).start()

    def _watch(self) -> None:
        """End all sums once a process has ended: a GPU would wait for its part for ever."""
        while not self._closing.wait(WATCH_S):
            if any(other.has_died() for other in self.others):
                self.inner.process_group.end_sums()
                return

    def close(self) -> None:
        self._closing.set()
        self.inner.process_group.end_sums()
        super().close()

    def abandon(self) -> None:
        """Go back to the state before an update that did not end."""
        self.inner.undo()

    def _merged(self, report: Report, replies: Sequence[Message]) -> Report:
        return report

    def snapshot(self, member: int = 0) -> Snapshot:
        """Save the learner and the games of all processes, as one process with all would.

        If a process has ended, no games are saved.
        """
        saved: Snapshot = self.inner.snapshot()
        if self._broken or GAMES not in saved.blobs:
            return replace(saved, blobs={})
        others = [replica.unpacked(reply) for reply in self.call(Message(replica.STATE))]
        mine = fingerprint(self.inner)
        for rank, other in enumerate(others, 1):
            if other.meta[WEIGHTS] != mine:
                raise StateError(
                    f"replica {rank} has other weights than the first; please report this"
                )
        return join_snapshots([saved, *others], self.inner.rules.seats)

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Restore all processes from a snapshot, of however many."""
        seats, games = self.inner.rules.seats, self.inner.games.each
        mine, *theirs = (
            slice_snapshot(snapshot, seats, rank * games, games)
            for rank in range(len(self.others) + 1)
        )
        for other, part in zip(self.others, theirs, strict=True):
            other.send(replica.packed(replica.RESTORE, part))
        self.inner.restore(mine)
        self._replies()
