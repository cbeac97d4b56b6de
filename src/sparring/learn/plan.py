"""What a learner is made of, decided once at the top; below it nobody asks again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sparring.config import CollectConfig, NetConfig
from sparring.games.rules import Rules
from sparring.pools.lineups import Lineup
from sparring.pools.native import Pool
from sparring.pools.protocol import GamePool

if TYPE_CHECKING:
    from sparring.pools.cuda import CudaPool

CPU = "cpu"


@dataclass(frozen=True)
class Plan:
    """Rules, line-ups, places, network and settings of one run or of a population."""

    rules: Rules
    lineups: tuple[Lineup, ...]
    seeds: tuple[int, ...]
    """One per member."""
    threads: int
    device: str
    """Where the network lives: cpu or cuda."""
    games_on: str
    """Where the games live: cpu, or with the network."""
    fused: bool
    """Rollout and update run as graphs on the GPU."""
    collect: CollectConfig
    net: NetConfig
    settings: tuple[Any, ...]
    """Of the algorithm, one per member."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Settings of a learner of your own, as they were written."""
    foreign: GamePool | None = None
    """An environment that somebody brought along."""

    @property
    def seed(self) -> int:
        """Of a run that is trained alone."""
        return self.seeds[0]

    @property
    def spare_threads(self) -> int:
        """Cores that training leaves free: half of them if games and network have a GPU."""
        return max((os.cpu_count() or 1) // 2, 1) if self.games_on != CPU else 1

    def host_pool(self) -> GamePool:
        """The games on CPU threads, or the environment that was brought along."""
        return self.foreign or self.native_pool(slots=self.collect.slots)

    def native_pool(self, *, slots: int) -> Pool:
        """The games on CPU threads."""
        return Pool(
            self.rules,
            self.collect.games,
            seed=self.seed,
            threads=self.threads,
            lineups=self.lineups,
            slots=slots,
        )

    def device_pool(self) -> CudaPool:
        """The games of all members on the GPU."""
        from sparring.pools.cuda import CudaPool

        return CudaPool(
            self.rules,
            self.collect.games * len(self.seeds),
            seeds=self.seeds,
            lineups=self.lineups,
            device=self.device,
        )
