"""What the kernels of a pool on a GPU are compiled for."""

from __future__ import annotations

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.pools.native import Pool

BLOCK = 32
"""Threads per block, a warp; one plays one game, or has none."""
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


def check_games(games: int, seeds: int, per_warp: int) -> None:
    """Refuse numbers of games that cannot be spread over seeds and warps."""
    if per_warp < 1 or BLOCK % per_warp:
        raise ConfigError(f"per_warp={per_warp} must divide {BLOCK}: 1, 2, 4, 8, 16 or 32")
    if games < 1 or games % seeds:
        raise ConfigError(f"num_games={games} must be a multiple of the {seeds} seeds")
    if seeds > 1 and games // seeds % BLOCK:
        raise ConfigError(f"pools of several seeds need multiples of {BLOCK} games for each")
