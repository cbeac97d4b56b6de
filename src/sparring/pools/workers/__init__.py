"""Custom environments in worker processes, stepped through shared memory."""

from sparring.pools.workers.pool import WorkerPool

__all__ = ["WorkerPool"]
