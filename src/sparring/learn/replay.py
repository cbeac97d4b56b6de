"""Replay: a ring of decisions with what followed them, to be learned from many times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sparring.config import ReplayConfig
from sparring.games.rules import Rules
from sparring.learn.learner import Segment
from sparring.learn.rollout import Rollout
from sparring.learn.transitions import Transitions


@dataclass(frozen=True)
class Samples:
    """A batch for one optimiser step."""

    obs: Tensor
    """[batch, row_bytes]."""
    mask: Tensor
    """[batch, actions], bytes."""
    action: Tensor
    """[batch] int32, or [batch, box] as the games took it, within -1..1."""
    paid: Tensor
    """[batch]: discounted payments until `next_obs`."""
    discount: Tensor
    """[batch]: of what follows there. 0 if nothing does; negative where the value is that of the
    other seat of a zero-sum game, which was to move when the game was cut."""
    next_obs: Tensor
    """Of the same seat and role, up to n decisions later, or its last one before a cut."""
    next_mask: Tensor
    weight: Tensor
    """[batch]: takes the preference of priorities back; 1 without them."""
    places: npt.NDArray[np.int64] | Tensor
    """Where the decisions lie in the ring."""


class Replay:
    """A ring of decisions. Each is stored once; what follows is a link to another one.

    A decision gets its place when it is made; what it was paid and what followed is written once
    that is known, perhaps rollouts later. Until then it is not sampled, but it may be what follows
    another one.
    """

    def __init__(
        self,
        rules: Rules,
        config: ReplayConfig,
        *,
        row_bytes: int,
        carried: int,
        seed: int,
        squash: bool = False,
    ) -> None:
        """Make room. carried: open decisions that rollouts hand on, see `Transitions`."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Decisions that can be sampled."""
        raise NotImplementedError

    def mark_cuts(self, rollout: Rollout) -> None:
        """Before linking: say which cut games have a last row that stands for what would follow."""
        raise NotImplementedError

    def push(self, rollout: Rollout, transitions: Transitions) -> None:
        """Take over a rollout that was linked; call it before its open decisions are carried."""
        raise NotImplementedError

    def sample(self, number: int, correction: float = 1.0) -> Samples:
        """Draw a batch; the same for the same seed, contents and number of the optimiser step."""
        raise NotImplementedError

    def reprioritise(self, places: npt.NDArray[np.int64], error: npt.NDArray[np.float32]) -> None:
        """Say how wrong the estimates of sampled decisions were."""
        raise NotImplementedError

    def clear(self) -> None:
        """Forget everything."""
        raise NotImplementedError

    def stats(self) -> dict[str, float]:
        """learning/replay_fill, a share, and learning/replay_age, decisions ago in the mean."""
        raise NotImplementedError

    def state(self) -> tuple[dict[str, Tensor], dict[str, Segment], dict[str, int]]:
        """Return what is still changing, sealed segments by name, and counts."""
        raise NotImplementedError

    def load_state(
        self,
        tensors: Mapping[str, Tensor],
        segments: Mapping[str, Mapping[str, Tensor]],
        meta: Mapping[str, int],
    ) -> None:
        """Go on from `state`."""
        raise NotImplementedError


def replay_bytes(rules: Rules, row_bytes: int, config: ReplayConfig) -> int:
    """Bytes of a replay, to be refused before they are allocated."""
    raise NotImplementedError
