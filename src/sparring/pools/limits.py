"""What a pool can be made of: aligned rows, and how much room its games take."""

from __future__ import annotations

from sparring import _native
from sparring.errors import ConfigError
from sparring.games.given import whole
from sparring.games.rules import Rules

MEMORY_STEP = 16
"""Memory comes in so many bytes, so that rows stay aligned."""
MOST_MEMORY = 2**20
MOST_INDEX = 2**32
"""Games of all pools together are numbered with 32 bits."""


def bytes_per_game(rules: Rules, *, observe: bool = True, memory: int = 0) -> int:
    """Return how much room each game of a pool takes, arrays included."""
    flags = (rules.skip_forced, observe, memory, False, 0)
    one = _native.make_pool(rules.native, 1, 0, 0, 1, 1, *flags)
    return one.array_bytes


def check_memory(memory: int) -> None:
    """Refuse a size that would leave rows unaligned, or is absurd."""
    if not 0 <= whole("memory", memory) <= MOST_MEMORY or memory % MEMORY_STEP:
        raise ConfigError(
            f"memory={memory} must be a multiple of {MEMORY_STEP} bytes, at most {MOST_MEMORY}"
        )


def memory_entry(memory: int) -> dict[str, int]:
    """What the head of a saved state says of memory: nothing where there is none."""
    return {"memory": memory} if memory else {}
