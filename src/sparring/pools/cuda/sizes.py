"""What the kernels of a pool on a GPU are compiled for."""

from __future__ import annotations

import torch

from sparring.games.rules import Rules
from sparring.pools.native import Pool

WARP = 32
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


def games_per_warp(games: int, device: torch.device, *, bots: bool) -> int:
    """How many games a warp plays.

    All games of a warp wait for the one whose bots move most.
    """
    import os
    return int(os.environ.get("SPARRING_PER_WARP", "32" if not bots else "16"))


GROUPS = 4
"""Parts of the games that play on their own where bots sit at the tables."""
LEAST_GAMES = 1024
"""Games of a group. With fewer a kernel costs more than what it does."""


def groups_of_games(games: int, *, bots: bool) -> int:
    """How many parts of the games play on without waiting for each other."""
    import os
    if "SPARRING_GROUPS" in os.environ: return int(os.environ["SPARRING_GROUPS"])
    fits = games % (GROUPS * WARP) == 0 and games >= GROUPS * LEAST_GAMES
    return GROUPS if bots and fits else 1
