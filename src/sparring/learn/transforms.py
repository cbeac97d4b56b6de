"""Row transforms: what is done to rows before they are learned from, out of a rollout or a replay.

Some change rows in place (`learn.mirror`), others make further rows of some (`learn.hindsight`),
which a replay samples like others and learners from rollouts have a term of the loss for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from sparring.config import CollectConfig, HindsightConfig
from sparring.learn.hindsight import Hindsight
from sparring.learn.mirror import mirrors_of
from sparring.learn.replay import Samples
from sparring.pools.protocol import GamePool


class RowTransform(Protocol):
    """Changes rows in place."""

    def epoch(self, update: int, number: int, samples: int) -> Mapping[str, Tensor]:
        """What an epoch of an update knows of each of its samples besides: whom it changes."""

    def turn(self, rows: dict[str, Tensor]) -> None:
        """Change the rows of a minibatch; they have what `epoch` knew of them."""

    def drawn(self, samples: Samples, step: int) -> Samples:
        """Return what an optimizer step learns from in place of samples of a replay."""


@dataclass(frozen=True)
class Transforms:
    """Those of a run."""

    turning: Sequence[RowTransform] = ()
    """Change rows in place, one after the other."""
    anew: Sequence[Hindsight] = ()
    """Make further rows."""


def transforms_of(
    pool: GamePool,
    collect: CollectConfig,
    hindsight: HindsightConfig | None,
    *,
    seed: int,
    device: torch.device,
) -> Transforms:
    """Make those that settings ask for. device: where rows are when they are learned from."""
    anew = [Hindsight(pool, hindsight, seed)] if hindsight and hindsight.sees else []
    mirrors = mirrors_of(pool.rules, collect, device, memory=pool.memory_bytes, seed=seed)
    return Transforms(mirrors, anew)
