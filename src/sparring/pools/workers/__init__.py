"""Environments in processes of their own, stepped over shared memory."""

from sparring.pools.workers.pool import WorkerPool

__all__ = ["WorkerPool"]
