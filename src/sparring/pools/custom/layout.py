"""Where the numbers of an observation lie in a row of bytes, and what they are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, SparringError
from sparring.games.features import Feature, FeatureBlock

ROW_ALIGNMENT = 16
"""Observation rows take a multiple of this many bytes, like those of native games."""
FLOATS, BYTES = "float32", "uint8"
ALL = "obs"
"""What an observation is called that has no parts with names."""


@dataclass(frozen=True)
class Part:
    """A stretch of numbers with a name: a key of a Dict observation, or all of another one."""

    name: str
    count: int
    dtype: str = FLOATS
    divisor: float = 1.0
    """What a network sees divided by; pixels by 255."""

    def plain(self) -> list[Any]:
        return [self.name, self.count, self.dtype, self.divisor]


@dataclass(frozen=True)
class Layout:
    """Floats first, then whole numbers within 0..255 as bytes: a quarter of the room."""

    parts: tuple[Part, ...]
    names: tuple[str, ...] = ()
    """Of all numbers, where the environment says them."""

    def __post_init__(self) -> None:
        """Refuse names that are not one for each number."""
        if self.names and (len(self.names), len(set(self.names))) != (self.numbers, self.numbers):
            raise ConfigError(
                f"feature_names has {len(self.names)} names, {len(set(self.names))} of them "
                f"different; an observation has {self.numbers} numbers, each needs one"
            )

    @cached_property
    def numbers(self) -> int:
        """Length of a flattened observation."""
        return sum(part.count for part in self.parts)

    @cached_property
    def obs_bytes(self) -> int:
        """Length of a row."""
        used = 4 * len(self._floats) + len(self._bytes)
        return -(-used // ROW_ALIGNMENT) * ROW_ALIGNMENT

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Every number in the order of a flattened observation."""
        found, floats, whole = [], 0, 4 * len(self._floats)
        for name, part in zip(self._called(), self._by_number, strict=True):
            if part.dtype == FLOATS:
                found.append(Feature(name, FLOATS, 4 * floats, part.divisor))
                floats += 1
            else:
                found.append(Feature(name, BYTES, whole, part.divisor))
                whole += 1
        return tuple(found)

    @cached_property
    def blocks(self) -> tuple[FeatureBlock, ...]:
        found, first = [], 0
        for part in self.parts:
            found.append(FeatureBlock(part.name, first, part.count, ("value",)))
            first += part.count
        return tuple(found)

    def write(self, out: npt.NDArray[np.uint8], numbers: npt.NDArray[Any]) -> None:
        """Write flattened observations [..., numbers] into rows [..., obs_bytes or more]."""
        floats = 4 * len(self._floats)
        if floats:
            chosen = numbers if not len(self._bytes) else numbers[..., self._floats]
            out[..., :floats].view(np.float32)[...] = chosen
        if len(self._bytes):
            given = numbers[..., self._bytes]
            with np.errstate(invalid="ignore"):
                packed = given.astype(np.uint8)
            if not (packed == given).all():
                raise self._outside(given != packed)
            out[..., floats : floats + len(self._bytes)] = packed

    def plain(self) -> dict[str, Any]:
        """Return what `read_layout` reads, for a checkpoint; nothing where floats have no names."""
        if self == plain_layout(self.numbers):
            return {}
        found: dict[str, Any] = {"parts": [part.plain() for part in self.parts]}
        return found | ({"names": list(self.names)} if self.names else {})

    @cached_property
    def _by_number(self) -> list[Part]:
        return [part for part in self.parts for _ in range(part.count)]

    @cached_property
    def _floats(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero([part.dtype == FLOATS for part in self._by_number])

    @cached_property
    def _bytes(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero([part.dtype == BYTES for part in self._by_number])

    def _called(self) -> Sequence[str]:
        if self.names:
            return self.names
        return [f"{part.name}[{i}]" for part in self.parts for i in range(part.count)]

    def _outside(self, wrong: npt.NDArray[np.bool_]) -> SparringError:
        number = self._bytes[np.argwhere(wrong)[0][-1]]
        return SparringError(
            f"an observation lies outside of its space: {self._called()[number]} is no whole "
            "number within 0..255, as its space says"
        )


def plain_layout(numbers: int) -> Layout:
    """Floats without names, as all environments once had them."""
    return Layout((Part(ALL, numbers),))


def read_layout(
    numbers: int, parts: Sequence[Sequence[Any]] = (), names: Sequence[str] = ()
) -> Layout:
    """Read a layout that a checkpoint holds."""
    if not parts:
        return plain_layout(numbers)
    read = tuple(Part(str(n), int(c), str(kind), float(by)) for n, c, kind, by in parts)
    return Layout(read, tuple(names))
