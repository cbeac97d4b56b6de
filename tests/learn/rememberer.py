"""A toy learner that remembers: REINFORCE that is pulled a little toward what it has seen before.

What it remembers is kept in sealed segments, the oldest of which are forgotten, and an open tail.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from learn.reinforce import Reinforce
from sparring.learn.learner import Learner, Report, Snapshot
from sparring.learn.plan import Plan

EACH, SEALED, MOST = 24, 32, 3
"""Rows of an update, rows of a segment, segments that are kept."""


def make(plan: Plan) -> Learner:
    """What `--algo learn.rememberer:make` calls."""
    return Rememberer(plan)


class Rememberer(Reinforce):
    """Every weight moves a little by what is remembered, so that a lost row is noticed."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.sealed: dict[str, Tensor] = {}
        self.tail = torch.empty(0, plan.rules.obs_bytes, dtype=torch.uint8)

    def iterate(self, progress: float) -> list[Report]:
        """Learn as the other toy does, remember, and learn from that."""
        reports = super().iterate(progress)
        rows = torch.from_numpy(self.collector.rollout.rows()["obs"])
        self.tail = torch.cat([self.tail, rows[-EACH:, : self.tail.shape[1]]])
        if len(self.tail) >= SEALED:
            self.sealed[str(self.updates)] = self.tail[:SEALED]
            self.tail = self.tail[SEALED:]
        self.sealed = dict(list(self.sealed.items())[-MOST:])
        seen = torch.cat([*self.sealed.values(), self.tail]).float()
        pull = (seen * torch.arange(1, len(seen) + 1)[:, None]).mean()
        with torch.no_grad():
            for weight in self.net.parameters():
                weight.add_(1e-6 * pull)
        return reports

    def snapshot(self, member: int = 0) -> Snapshot:
        """Also what is remembered."""
        made = super().snapshot(member)
        return replace(
            made,
            tensors={**made.tensors, "replay": {"tail": self.tail.clone()}},
            segments={
                name: lambda rows=rows: {"rows": rows.clone()} for name, rows in self.sealed.items()
            },
        )

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Go on from a snapshot, perhaps from one that remembers nothing."""
        super().restore(snapshot, member)
        if "replay" in snapshot.tensors:
            self.tail = snapshot.tensors["replay"]["tail"]
            self.sealed = {name: read()["rows"] for name, read in snapshot.segments.items()}
