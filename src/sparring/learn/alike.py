"""Settings of the algorithms that all members of a population on one GPU have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparring.errors import ConfigError

SHARED = {
    "ppo": ("epochs", "minibatch"),
    "dqn": ("double", "dueling", "huber", "target_every"),
    "sac": ("critic_hidden", "critic_norm", "target_entropy", "target_share"),
}
"""By algorithm; they decide the shapes of what is computed, or the graph itself."""


def demand_shared(algo: str, settings: Sequence[Any]) -> None:
    """Refuse members that differ in these. settings: of the algorithm, one per member."""
    for name in SHARED[algo]:
        if len({getattr(one, name) for one in settings}) > 1:
            raise ConfigError(f"members of a population share {algo}.{name}; it decides the shapes")
