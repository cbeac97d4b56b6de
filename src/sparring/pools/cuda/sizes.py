"""Compile-time sizes of the kernels of a GPU pool."""

from __future__ import annotations

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.pools.native import Pool

WARP = 32
MASK_BYTES = 16
"""Bytes of a mask that one thread writes; kMaskBytes in csrc/cuda/pool.cuh."""
STAGE_BYTES = 96 * 1024
"""Shared memory of a block that all recent GPUs have."""


def sizes_of(
    rules: Rules, host: Pool, *, memory: int = 0, stage_bytes: int = STAGE_BYTES
) -> dict[str, int]:
    return {
        "SPARRING_SEATS": rules.seats,
        "SPARRING_ACTIONS": rules.actions,
        "SPARRING_OBS_BYTES": rules.obs_bytes,
        "SPARRING_MEMORY_BYTES": memory,
        "SPARRING_EXTRA_BYTES": host._native.extra.size,
        "SPARRING_ZERO_SUM": int(rules.zero_sum),
        "SPARRING_STAGE_BYTES": stage_bytes,
    }


def check_games(games: int, seeds: int, per_warp: int | None) -> None:
    """Refuse numbers of games that do not divide over seeds and warps."""
    if per_warp is not None and not 1 <= per_warp <= WARP:
        raise ConfigError(f"per_warp={per_warp} must be 1..{WARP}")
    if games < 1 or games % seeds:
        raise ConfigError(f"num_games={games} must be a multiple of the {seeds} seeds")
    if seeds > 1 and games // seeds % WARP:
        raise ConfigError(f"pools of several seeds need multiples of {WARP} games for each")


def warps_for(games: int, per_warp: int) -> int:
    """Number of warps that play a member's games."""
    return -(-games // per_warp)
