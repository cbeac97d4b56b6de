"""What the kernels of a pool on a GPU are compiled for."""

from __future__ import annotations

from sparring.games.rules import Rules
from sparring.pools.native import Pool

STAGE_BYTES = 96 * 1024
"""Shared memory that every GPU of the last years gives a block."""


def sizes_of(
    rules: Rules, host: Pool, *, memory: int = 0, stage_bytes: int = STAGE_BYTES
) -> dict[str, int]:
    """What the kernels are compiled for."""
    return {
        "SPARRING_SEATS": rules.seats,
        "SPARRING_ACTIONS": rules.actions,
        "SPARRING_OBS_BYTES": rules.obs_bytes,
        "SPARRING_MEMORY_BYTES": memory,
        "SPARRING_SIDE_BYTES": host._native.side.size,
        "SPARRING_ZERO_SUM": int(rules.zero_sum),
        "SPARRING_STAGE_BYTES": stage_bytes,
    }
