"""Pools: many games behind one interface."""

from sparring.pools.native import LEARNER, NOBODY, Batch, Lineup, Pool

__all__ = ["LEARNER", "NOBODY", "Batch", "Lineup", "Pool"]
