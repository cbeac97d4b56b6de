"""Crews in Ray that remember what came of every order."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import pytest

from sparring.cluster.actors.crew import Order, Parcel
from sparring.cluster.actors.learner import DistributedPPO, places_of
from sparring.cluster.actors.packing import counts_of
from sparring.cluster.ray.session import Cluster
from sparring.config import TrainConfig
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import written

NEEDS_RAY = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason='Ray is not installed: pip install "sparring[cluster]"',
    ),
]


def learner_in(cluster: Cluster, config: TrainConfig, **options: Any) -> DistributedPPO:
    crew = recording()(cluster, written(config), places_of(config), config.distributed, **options)
    return DistributedPPO(crew, config.distributed, resolve([config]))


def recording() -> Any:
    """A crew that remembers what came of every order."""
    from sparring.cluster.ray.crew import RayCrew

    class Recording(RayCrew):
        def __init__(self, *words: Any, **options: Any) -> None:
            self.taken: list[Order] = []
            self.gone: list[Order] = []
            self.decisions = 0
            self.lives: set[tuple[int, int]] = set()
            """Actors that have handed something in, and in which life."""
            super().__init__(*words, **options)

        def take(self, timeout_s: float) -> Sequence[Parcel]:
            found = super().take(timeout_s)
            self.taken += [parcel.order for parcel in found]
            self.decisions += sum(counts_of(parcel.arrays)["decisions"] for parcel in found)
            self.lives |= {(parcel.order.actor, parcel.life) for parcel in found}
            return found

        def lost(self) -> Sequence[Order]:
            found = super().lost()
            self.gone += found
            return found

    return Recording
