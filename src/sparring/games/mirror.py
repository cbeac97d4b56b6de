"""Mirror symmetry of a game: permutations and sign changes of features and actions.

A symmetric game has `symmetry.py` in its folder with `mirror(rules)`, which returns a `Mirror`, or
None if flags break the symmetry. For every position, playing the mirrored action in the mirrored
observation must give mirrored next observations and masks, and the same rewards and end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.features import Feature

SIGN_BIT = 0x80
"""Sign bit in the last byte of a float32."""


@dataclass(frozen=True)
class Mirror:
    """Source index and sign of every feature and action; applied twice it is the identity."""

    features: tuple[int, ...]
    """Index of the source feature, for every feature of `rules.features`."""
    signs: tuple[int, ...]
    """1 or -1 for every feature; only float32 features can change sign."""
    actions: tuple[int, ...]
    """Mirrored action of every action; for continuous actions the source of every component."""
    action_signs: tuple[int, ...] = ()
    """1 or -1 for every component of continuous actions."""

    def check(self, game: str, features: Sequence[Feature], *, actions: int, box: int) -> Mirror:
        """Return this mirror; raises ConfigError if it does not fit the game."""
        error = self._problem(features, box or actions, box)
        if error:
            raise ConfigError(f"symmetry of {game}: {error}; fix its symmetry.py")
        return self

    def _problem(self, features: Sequence[Feature], actions: int, box: int) -> str:
        count = len(features)
        if (len(self.features), len(self.signs)) != (count, count):
            return f"features and signs need one entry for each of {count} features"
        if len(self.actions) != actions or len(self.action_signs) != box:
            return f"actions need {actions} entries, action_signs {box}"
        if not (
            is_involution(self.features, self.signs)
            and is_involution(self.actions, self.action_signs)
        ):
            return "the image of the image is not the original"
        for feature, source_index, sign in zip(features, self.features, self.signs, strict=True):
            other = features[source_index]
            if (feature.dtype, feature.divisor) != (other.dtype, other.divisor):
                return f"{feature.name} and {other.name} have different types or divisors"
            if sign < 0 and feature.dtype != "float32":
                return f"{feature.name} is {feature.dtype}; only float32 can change its sign"
        return ""

    def bytes_of(
        self, features: Sequence[Feature], row_bytes: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """Return for every byte of a row its source byte, and the bits to flip."""
        source, flipped = np.arange(row_bytes), np.zeros(row_bytes, np.uint8)
        for feature, source_index, sign in zip(features, self.features, self.signs, strict=True):
            size = np.dtype(feature.dtype).itemsize
            source[feature.offset : feature.offset + size] = features[
                source_index
            ].offset + np.arange(size)
            if sign < 0:
                flipped[feature.offset + size - 1] = SIGN_BIT
        return source, flipped

    def rows(
        self, features: Sequence[Feature], obs: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.uint8]:
        """Mirror observation bytes [..., obs_bytes]."""
        source, flipped = self.bytes_of(features, obs.shape[-1])
        return obs[..., source] ^ flipped

    def masks(self, mask: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Mirror masks [..., actions]."""
        return mask if self.action_signs else mask[..., list(self.actions)]

    def play(self, action: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Mirror actions: discrete ones, or [..., box]."""
        if self.action_signs:
            signs = np.array(self.action_signs, np.float32)
            return np.asarray(action[..., list(self.actions)] * signs)
        return np.asarray(np.array(self.actions, action.dtype)[action])


def is_involution(sources: Sequence[int], signs: Sequence[int]) -> bool:
    """Whether applying a permutation with signs twice is the identity."""
    if any(not 0 <= source_index < len(sources) for source_index in sources) or any(
        s not in (1, -1) for s in signs
    ):
        return False
    is_inverse = all(sources[source_index] == index for index, source_index in enumerate(sources))
    return is_inverse and all(signs[index] == signs[sources[index]] for index in range(len(signs)))
