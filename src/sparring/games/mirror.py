"""A game's mirror image: which numbers of a row and which actions change places or signs.

A game that is the same in a mirror says so in its folder: `symmetry.py` has `mirror(rules)`, which
returns a `Mirror`, or None where flags make both sides differ. It holds for every situation: if the
image of a row is played with the image of an action, then what follows, what is legal, what is
paid and how it ends are the images of what they were.
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
"""Of the last byte of a float32."""


@dataclass(frozen=True)
class Mirror:
    """Where everything comes from in the image. The image of the image is the original."""

    features: tuple[int, ...]
    """For every feature of `rules.features`, the one whose value it takes."""
    signs: tuple[int, ...]
    """For every feature: 1, or -1 where it changes its sign as well, which is for float32 alone."""
    actions: tuple[int, ...]
    """For every action its image; of continuous actions, for every number the one it takes."""
    action_signs: tuple[int, ...] = ()
    """Of continuous actions: 1 or -1 for every number."""

    def check(self, game: str, features: Sequence[Feature], *, actions: int, box: int) -> Mirror:
        """Refuse a declaration that cannot be one of this game; return it otherwise."""
        error = self._wrong(features, box or actions, box)
        if error:
            raise ConfigError(f"symmetry of {game}: {error}; mend its symmetry.py")
        return self

    def _wrong(self, features: Sequence[Feature], actions: int, box: int) -> str:
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
        for feature, place, sign in zip(features, self.features, self.signs, strict=True):
            other = features[place]
            if (feature.dtype, feature.divisor) != (other.dtype, other.divisor):
                return f"{feature.name} and {other.name} have different types or divisors"
            if sign < 0 and feature.dtype != "float32":
                return f"{feature.name} is {feature.dtype}; only float32 can change its sign"
        return ""

    def bytes_of(
        self, features: Sequence[Feature], row_bytes: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """For every byte of a row the one it takes, and the bits that change behind that."""
        source, flipped = np.arange(row_bytes), np.zeros(row_bytes, np.uint8)
        for feature, place, sign in zip(features, self.features, self.signs, strict=True):
            size = np.dtype(feature.dtype).itemsize
            source[feature.offset : feature.offset + size] = features[place].offset + np.arange(
                size
            )
            if sign < 0:
                flipped[feature.offset + size - 1] = SIGN_BIT
        return source, flipped

    def rows(
        self, features: Sequence[Feature], obs: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.uint8]:
        """The images of observation bytes [..., obs_bytes]."""
        source, flipped = self.bytes_of(features, obs.shape[-1])
        return obs[..., source] ^ flipped

    def masks(self, mask: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The images of masks [..., actions]."""
        return mask if self.action_signs else mask[..., list(self.actions)]

    def play(self, action: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The images of actions: numbers of them, or [..., box]."""
        if self.action_signs:
            signs = np.array(self.action_signs, np.float32)
            return np.asarray(action[..., list(self.actions)] * signs)
        return np.asarray(np.array(self.actions, action.dtype)[action])


def is_involution(places: Sequence[int], signs: Sequence[int]) -> bool:
    """Whether taking values from these places twice, with these signs, changes nothing."""
    if any(not 0 <= place < len(places) for place in places) or any(
        s not in (1, -1) for s in signs
    ):
        return False
    back = all(places[place] == here for here, place in enumerate(places))
    return back and all(signs[here] == signs[places[here]] for here in range(len(signs)))
