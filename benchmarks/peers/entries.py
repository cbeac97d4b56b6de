"""Who takes part in train_vs_peers.py, and what all of them have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sparring import Rules
from sparring.games.skull_king import game_length

GAME, SEATS, BOT = "skull_king", 4, "random"
DECISIONS = game_length(Rules(GAME)) or 0
"""Decisions of all seats in a whole game, forced ones included."""


@dataclass(frozen=True)
class Settings:
    """What all contestants have in common."""

    rollout: int = 8192
    minibatch: int = 1024
    epochs: int = 4
    hidden: tuple[int, ...] = (256, 256)
    lr: float = 3e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    value_weight: float = 0.5
    max_grad_norm: float = 0.5
    threads: int = 2
    seed: int = 1
    ours: dict[str, Any] = field(default_factory=dict)
    """Of our own learner: what of `collect` is otherwise than usual."""


QUICK = Settings(rollout=1024, minibatch=256, epochs=1, hidden=(32, 32))


@dataclass(frozen=True)
class Entry:
    """A contestant: its program, how many games it steps at once, and what differs in ours."""

    kind: str
    games: int
    label: str
    shared: bool = False
    sparse: bool = False
    skip_forced: bool = False

    @property
    def name(self) -> str:
        """A short name that is unique."""
        return f"{self.kind}-{self.games}"

    @property
    def ours(self) -> bool:
        """Whether it is sparring's own learner."""
        return self.kind not in ("maskable", "plain")


def entries(sizes: Sequence[int], plain_sizes: Sequence[int], games: int) -> list[Entry]:
    """Return everybody who takes part."""
    peers = [Entry("maskable", size, f"MaskablePPO, {size} envs") for size in sizes]
    peers += [Entry("plain", size, f"plain torch loop, {size} envs") for size in plain_sizes]
    shared = "ours, one shared trunk, sparse"
    return [
        *peers,
        Entry("dense", games, "ours, same nets, dense first layer"),
        Entry("sparse", games, "ours, same nets, sparse first layer", sparse=True),
        Entry("shared", games, shared, shared=True, sparse=True),
        Entry("unforced", games, f"{shared}, forced moves skipped", True, True, True),
    ]
