"""Start positions of a pool, packed for the native core."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, SparringError
from sparring.games.arguments import check_type
from sparring.games.rules import Rules
from sparring.games.starts import SavedPosition, Start, read_starts, resolve_start, write_starts

__all__ = ["MAX_STARTS", "PackedStarts", "Start", "pack", "read_starts", "write_starts"]

MAX_STARTS = 1_000_000
"""Most positions of one pool: a start is drawn with 32 bits."""


@dataclass(frozen=True)
class PackedStarts:
    """Starts in arrays: cumulative weights (the default start's first), and bytes."""

    up_to: npt.NDArray[np.float64]
    games: bytes
    side_of: npt.NDArray[np.int32]
    """By position, its row in `sides`: many positions share their extra bytes, or have none."""
    sides: bytes
    names: tuple[str, ...]

    def explain(self, wrong: str) -> str:
        """Put a start's name before an error, which begins with its index."""
        number, _, text = wrong.partition(": ")
        return f"starts: {self.names[int(number)]}: {text}"


def pack(rules: Rules, starts: Sequence[Start], game_bytes: int, side_bytes: int) -> PackedStarts:
    """Pack starts for a pool."""
    usual, weights, games, names = 0.0, [], [], []
    side_of, sides = [], {b"": 0}
    if len(starts) > MAX_STARTS:
        raise ConfigError(f"{len(starts)} starts: a pool draws from {MAX_STARTS} at most")
    for number, start in enumerate(starts):
        check_type("starts", start, Start, "Start")
        name = start.name or f"start {number}"
        position = checked(rules, start, name, game_bytes, side_bytes)
        if position is None:
            usual += start.weight
            continue
        weights.append(start.weight)
        games.append(position.game)
        names.append(name)
        side_of.append(sides.setdefault(position.side, len(sides)))
    return PackedStarts(
        up_to=np.cumsum([usual, *weights], dtype=np.float64),
        games=b"".join(games),
        side_of=np.array(side_of, np.int32),
        sides=b"".join(side or bytes(side_bytes) for side in sides),
        names=tuple(names),
    )


def checked(
    rules: Rules, start: Start, name: str, game_bytes: int, side_bytes: int
) -> SavedPosition | None:
    """Return a start's bytes; refuses those that the native core cannot load."""
    if not (math.isfinite(start.weight) and start.weight > 0):
        raise ConfigError(f"starts: {name}: weight {start.weight} must be above 0 and finite")
    try:
        position = resolve_start(rules, start)
    except SparringError as wrong:
        raise ConfigError(f"starts: {name}: {wrong}") from None
    if position is None:
        return None
    if len(position.game) != game_bytes or len(position.side) not in (0, side_bytes):
        raise ConfigError(f"starts: {name}: saved by another game or build; save it again")
    return position
