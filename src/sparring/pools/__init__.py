"""Pools: many games stepped together."""

from sparring.pools.batch import Batch
from sparring.pools.lineups import LEARNER, NO_POLICY, Lineup, Mix
from sparring.pools.native import Pool
from sparring.pools.starts import Start, read_starts, write_starts

__all__ = [
    "LEARNER",
    "NO_POLICY",
    "Batch",
    "Lineup",
    "Mix",
    "Pool",
    "Start",
    "read_starts",
    "write_starts",
]
