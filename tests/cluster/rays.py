"""Crews in Ray that remember what came of every request."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import pytest

from sparring.cluster.actors.learner import DistributedLearner, actor_shares
from sparring.cluster.actors.packing import counts_of
from sparring.cluster.actors.supervisor import RolloutBatch, RolloutRequest
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


def learner_in(cluster: Cluster, config: TrainConfig, **options: Any) -> DistributedLearner:
    supervisor = recording()(
        cluster, written(config), actor_shares(config), config.distributed, **options
    )
    return DistributedLearner(supervisor, config.distributed, resolve([config]))


def recording() -> Any:
    """A supervisor that remembers what came of every request."""
    from sparring.cluster.ray.supervisor import RaySupervisor

    class Recording(RaySupervisor):
        def __init__(self, *words: Any, **options: Any) -> None:
            self.taken: list[RolloutRequest] = []
            self.gone: list[RolloutRequest] = []
            self.decisions = 0
            self.incarnations: set[tuple[int, int]] = set()
            """Actors that have handed something in, and in which incarnation."""
            super().__init__(*words, **options)

        def receive(self, timeout_s: float) -> Sequence[RolloutBatch]:
            found = super().receive(timeout_s)
            self.taken += [batch.request for batch in found]
            self.decisions += sum(counts_of(batch.arrays)["decisions"] for batch in found)
            self.incarnations |= {(batch.request.actor, batch.incarnation) for batch in found}
            return found

        def pop_lost(self) -> Sequence[RolloutRequest]:
            found = super().pop_lost()
            self.gone += found
            return found

    return Recording
