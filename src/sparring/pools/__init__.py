"""Pools: many games behind one interface."""

from sparring.pools.batch import Batch
from sparring.pools.lineups import LEARNER, NOBODY, Lineup, Pot
from sparring.pools.native import Pool
from sparring.pools.starts import Start, read_starts, write_starts

__all__ = [
    "LEARNER",
    "NOBODY",
    "Batch",
    "Lineup",
    "Pool",
    "Pot",
    "Start",
    "read_starts",
    "write_starts",
]
