"""Decisions of others that a network learns from: as bytes and bits, for there are millions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

BITS: Final = "little"
"""The order of actions in the bytes of masks."""
Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Decisions:
    """Decisions of one game or of many, one entry for each."""

    obs: npt.NDArray[np.uint8]
    """[n, obs_bytes]"""
    legal: npt.NDArray[np.uint8]
    """[n, actions / 8], a bit for every legal action."""
    action: npt.NDArray[np.int32]
    returns: npt.NDArray[np.float32]
    """What the seat is paid from here on, discounted; NaN where the game was not played out."""
    game: npt.NDArray[np.int32]
    """To which game each belongs."""

    def __len__(self) -> int:
        return len(self.action)

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, name) for name in ("obs", "legal", "action", "returns", "game")}

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return sum(array.nbytes for array in self.arrays.values())


def joined(parts: list[Decisions]) -> Decisions:
    """Put decisions behind each other. The list is emptied on the way: memory is needed once."""
    rows, first = sum(map(len, parts)), parts[0]
    whole = Decisions(
        *(np.empty((rows, *array.shape[1:]), array.dtype) for array in first.arrays.values())
    )
    at = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        for name, array in whole.arrays.items():
            array[at : at + len(part)] = part.arrays[name]
        at += len(part)
    return whole


def unpacked(legal: npt.NDArray[np.uint8], actions: int) -> npt.NDArray[np.uint8]:
    """Return masks [n, actions] of their bits."""
    return np.unpackbits(legal, axis=1, count=actions, bitorder=BITS)


def split(decisions: Decisions, share: float, seed: int) -> tuple[Places, Places]:
    """Return the places to learn from and those to measure by: a share of the games, by lot.

    Of several games one is kept for each side at least, unless the share is 0.
    """
    games = int(decisions.game[-1]) + 1
    count = round(share * games)
    if share and games > 1:
        count = min(max(count, 1), games - 1)
    out = np.zeros(games, np.bool_)
    out[np.random.default_rng([seed % 2**64, games]).permutation(games)[:count]] = True
    kept = out[decisions.game]
    return np.flatnonzero(~kept), np.flatnonzero(kept)
