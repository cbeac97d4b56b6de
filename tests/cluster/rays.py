"""Crews in Ray that remember what came of every order."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import pytest

from sparring.cluster.crew import Order, Parcel
from sparring.cluster.learner import FleetPPO, places_of
from sparring.cluster.packing import counts_of
from sparring.cluster.session import Cluster
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


def learner_in(cluster: Cluster, config: TrainConfig, **options: Any) -> FleetPPO:
    crew = recording()(cluster, written(config), places_of(config), config.fleet, **options)
    return FleetPPO(crew, config.fleet, resolve([config]))


def recording() -> Any:
    """A crew that remembers what came of every order."""
    from sparring.cluster.ray_crew import RayCrew

    class Recording(RayCrew):
        taken: list[tuple[Order, int]]
        gone: list[Order]

        def take(self, timeout_s: float) -> Sequence[Parcel]:
            found = super().take(timeout_s)
            self.__dict__.setdefault("taken", []).extend(
                (parcel.order, counts_of(parcel.arrays)["decisions"]) for parcel in found
            )
            return found

        def lost(self) -> Sequence[Order]:
            found = super().lost()
            self.__dict__.setdefault("gone", []).extend(found)
            return found

    return Recording
