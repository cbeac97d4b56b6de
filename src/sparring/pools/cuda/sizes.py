"""What the kernels of a pool on a GPU are compiled for."""

from __future__ import annotations

import torch

from sparring.games.rules import Rules
from sparring.pools.native import Pool

WARP = 32
MASK_BYTES = 16
"""What a thread writes of a mask; kMaskBytes in csrc/cuda/pool.cuh."""
BOT_GAMES = 8
"""Of a warp that plays games with bots: all wait for the one whose bots move most."""
LEAST_GAMES = 16
"""Of other warps. Fewer leave too many threads without work."""
FEW_WARPS = 8
"""On a multiprocessor. With more it is busy all the time, and fewer games would be more work."""
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


def evened(each: int, members: int, resident: int, device: torch.device) -> int:
    """Choose how many of a member's `each` games a warp plays, where no bot slows it down.

    resident: warps that a multiprocessor has room for.
    """
    units = torch.cuda.get_device_properties(device).multi_processor_count
    return even_rounds(each, members, resident * units) if resident <= FEW_WARPS else WARP


def even_rounds(each: int, members: int, at_once: int) -> int:
    """Return the games of a warp with which all rounds of `at_once` warps are about as full.

    With 32 the last round may have hardly a warp and takes as long as the others.
    """
    rounds = -(-members * warps_for(each, WARP) // at_once)
    fits = (n for n in range(LEAST_GAMES, WARP) if members * warps_for(each, n) <= rounds * at_once)
    return next(fits, WARP)


def warps_for(games: int, per_warp: int) -> int:
    """Warps that play a member's games."""
    return -(-games // per_warp)
