"""Pools: many games behind one interface."""

from sparring.pools.batch import Batch
from sparring.pools.lineups import LEARNER, NOBODY, Lineup, Pot
from sparring.pools.native import Pool

__all__ = ["LEARNER", "NOBODY", "Batch", "Lineup", "Pool", "Pot"]
