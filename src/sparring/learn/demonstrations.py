"""Demonstrations: recorded decisions in compact arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

BITS: Final = "little"
"""Bit order of packed masks."""
TARGET: Final = "target"
Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Decisions:
    """Decisions of recorded games, one entry each."""

    obs: npt.NDArray[np.uint8]
    """[n, obs_bytes]"""
    legal: npt.NDArray[np.uint8]
    """[n, actions / 8], packed masks; without columns for continuous actions."""
    action: npt.NDArray[Any]
    """[n] int32, or as the game took them [n, box] float32."""
    returns: npt.NDArray[np.float32]
    """Discounted return of the seat; NaN if the game is incomplete."""
    game: npt.NDArray[np.int32]
    """Index of the game."""
    target: npt.NDArray[Any]
    """What the policy that acted says, as `head_terms.KLPenalty.stored`; without columns where
    actions are learned."""

    def __len__(self) -> int:
        return len(self.action)

    @property
    def has_target(self) -> bool:
        return bool(self.target.shape[1])

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        names = ("obs", "legal", "action", "returns", "game", TARGET)
        return {name: getattr(self, name) for name in names}

    @property
    def size(self) -> int:
        """Total bytes."""
        return sum(array.nbytes for array in self.arrays.values())


def joined(parts: list[Decisions]) -> Decisions:
    """Concatenate decisions. Empties the list to free memory on the way."""
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
    """Return masks [n, actions] of packed ones."""
    return np.unpackbits(legal, axis=1, count=actions, bitorder=BITS)


def split(decisions: Decisions, share: float, seed: int) -> tuple[Places, Places]:
    """Return places of the training and the held-out decisions; whole games are drawn at random.

    share: of held-out games. Each side gets at least one game, unless there is one or share is 0.
    """
    games = int(decisions.game[-1]) + 1
    count = round(share * games)
    if share and games > 1:
        count = min(max(count, 1), games - 1)
    is_held_out = np.zeros(games, np.bool_)
    is_held_out[np.random.default_rng([seed % 2**64, games]).permutation(games)[:count]] = True
    held_out = is_held_out[decisions.game]
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)
