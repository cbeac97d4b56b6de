"""What the host wants to know about an update: one number per member, fetched in one piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from sparring.learn.fused.games import Games
from sparring.learn.fused.rollout import EARNED, FusedRollout
from sparring.pools.lineups import LEARNER


def rollout_figures(rollout: FusedRollout, games: Games) -> dict[str, Tensor]:
    """Count the rows of a rollout and what its finished games brought, by member."""
    members = rollout.members

    def by_member(of_step: Tensor) -> Tensor:
        return of_step.view(rollout.steps, members, -1).sum((0, 2))

    own, asked = rollout.policy == LEARNER, rollout.policy >= 0
    earned = rollout.earned.double().view(members, -1, len(EARNED)).sum(1)
    counts = rollout.counts.double()
    return {
        "decisions": by_member(own),
        "opponent_rows": by_member(asked & ~own),
        "forced": by_member(rollout.skipped.int()),
        "frozen": (games.frozen != 0).view(members, -1).sum(1),
        "cuts_dropped": rollout.cuts_dropped().view(members, -1).sum(1),
        **{f"earned_{name}": earned[:, i] for i, name in enumerate(EARNED)},
        **{f"count_{i}": counts[:, i] for i in range(counts.shape[1])},
    }


class Figures:
    """Numbers by name that are measured on the device and read on the host."""

    def __init__(self, measure: Callable[[], Mapping[str, Tensor]], members: int) -> None:
        found = measure()
        self._measure, self._names = measure, list(found)
        device = next(iter(found.values())).device
        self._here = torch.zeros(members, len(found), dtype=torch.float64, device=device)
        self._host = torch.zeros(
            self._here.shape, dtype=torch.float64, pin_memory=device.type == "cuda"
        )

    def take(self) -> None:
        """Measure; may be part of a graph."""
        self._here.copy_(torch.stack([one.double() for one in self._measure().values()], 1))

    def fetch(self) -> None:
        """Have them brought to the host; they are there once the stream is done."""
        self._host.copy_(self._here, non_blocking=True)

    def of(self, member: int) -> dict[str, float]:
        """Those of a member that were fetched last."""
        return dict(zip(self._names, self._host[member].tolist(), strict=True))
