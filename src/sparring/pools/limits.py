"""Limits of a pool: row alignment, memory of its games, and random openings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.errors import ConfigError
from sparring.games.arguments import check_int
from sparring.games.rules import Rules

MEMORY_STEP = 16
"""Memory is a multiple of this many bytes, so that rows stay aligned."""
MAX_MEMORY = 2**20
MAX_INDEX = 2**32
"""Games of all pools together have 32-bit indices."""
MAX_PLIES = 100
"""Longest random opening."""
TRIED = 64
"""Random games that measure how many decisions an opening may take."""


def bytes_per_game(rules: Rules, *, observe: bool = True, memory: int = 0) -> int:
    """Bytes that each game of a pool takes, arrays included."""
    flags = (rules.skip_forced, observe, memory, False, 0)
    one = _native.make_pool(rules.native, 1, 0, 0, 1, 1, *flags)
    return one.array_bytes


def check_memory(memory: int) -> None:
    """Refuse a memory size that is not aligned, or too large."""
    if not 0 <= check_int("memory", memory) <= MAX_MEMORY or memory % MEMORY_STEP:
        raise ConfigError(
            f"memory={memory} must be a multiple of {MEMORY_STEP} bytes, at most {MAX_MEMORY}"
        )


def memory_entry(memory: int) -> dict[str, int]:
    """Entry of a saved state's header; empty without memory."""
    return {"memory": memory} if memory else {}


def check_plies(rules: Rules, plies: int, name: str = "opening_plies=") -> int:
    """Refuse openings that end every game: they would be drawn again forever.

    name: how the user wrote it.
    """
    if not 0 <= plies <= MAX_PLIES:
        raise ConfigError(f"{name}{plies} is outside 0..{MAX_PLIES}")
    if not plies:
        return 0
    lengths = lengths_by_lot(rules, plies)
    if (lengths <= plies).all():
        raise ConfigError(
            f"{name}{plies} leaves no decision of {rules.name} to the players; "
            f"give at most {int(lengths.max()) - 1}"
        )
    return plies


def lengths_by_lot(rules: Rules, most: int) -> npt.NDArray[np.intp]:
    """Lengths of random games, `most` + 1 for all that take longer."""
    pool = _native.make_pool(rules.native, TRIED, 0, 0, 1, 1, False, False, 0, False, 0)
    pool.reset()
    lengths = np.full(TRIED, most + 1)
    for step in range(most):
        pool.run_random(1)
        ended = pool.terminated | pool.truncated
        lengths[ended] = np.minimum(lengths[ended], step + 1)
    return lengths
