"""Layout of an observation in a row of bytes, and names of its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, SparringError
from sparring.games.features import Feature, FeatureBlock

ROW_ALIGNMENT = 16
"""Observation rows are multiples of this many bytes, as in native games."""
FLOATS, BYTES = "float32", "uint8"
ALL = "obs"
"""Name of an observation without named parts."""


@dataclass(frozen=True)
class Pixels:
    """Pixels among the bytes of a row, in the order of their shape."""

    shape: tuple[int, ...]
    """As the environment gives it: (H, W), (H, W, C), (C, H, W), or stacked (F, ...) of the last
    two. The axis of channels is the smaller one of the first and the last."""
    offset: int
    """First byte in a row."""

    @property
    def channels_first(self) -> bool:
        return len(self.shape) > 2 and self.shape[-3] < self.shape[-1]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        if len(self.shape) == 2 or self.channels_first:
            return self.shape[-2], self.shape[-1]
        return self.shape[-3], self.shape[-2]

    @property
    def channels(self) -> int:
        """Channels, those of stacked frames together."""
        return self.count // math.prod(self.size)

    @property
    def count(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class LayoutPart:
    """A named range of numbers: a key of a Dict observation, or a whole observation."""

    name: str
    count: int
    dtype: str = FLOATS
    divisor: float = 1.0
    """Networks see the value divided by this; 255 for pixels."""
    shape: tuple[int, ...] = ()
    """Of pixels, see `Pixels`; () for other numbers."""
    choices: tuple[tuple[int, int], ...] = ()
    """Count and first value of every choice of a Discrete or MultiDiscrete space, else ()."""

    def plain(self) -> list[Any]:
        plain: list[Any] = [self.name, self.count, self.dtype, self.divisor]
        if self.choices:
            return [*plain, list(self.shape), [list(choice) for choice in self.choices]]
        return [*plain, list(self.shape)] if self.shape else plain

    def one_hot(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Turn the values of choices [B, choices] into the numbers of this part [B, count]."""
        numbers = np.zeros((len(given), self.count), np.float32)
        offset = 0
        for values, (count, first) in zip(given.T, self.choices, strict=True):
            for value in values[~np.isin(values, np.arange(first, first + count))][:1]:
                raise ConfigError(
                    f"observations: {self.name} is {value}; it has choices "
                    f"{first}..{first + count - 1}"
                )
            numbers[np.arange(len(given)), offset + values.astype(np.intp) - first] = 1
            offset += count
        return numbers


@dataclass(frozen=True)
class ObsLayout:
    """Floats first, then integers in 0..255 as single bytes."""

    parts: tuple[LayoutPart, ...]
    names: tuple[str, ...] = ()
    """Names of all numbers, if the environment gives them."""

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
        """Bytes of a row."""
        used = 4 * len(self._floats) + len(self._bytes)
        return -(-used // ROW_ALIGNMENT) * ROW_ALIGNMENT

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Every number in the order of a flattened observation."""
        features, floats, offset = [], 0, 4 * len(self._floats)
        for name, part in zip(self._names(), self._by_number, strict=True):
            if part.dtype == FLOATS:
                features.append(Feature(name, FLOATS, 4 * floats, part.divisor))
                floats += 1
            else:
                features.append(Feature(name, BYTES, offset, part.divisor))
                offset += 1
        return tuple(features)

    @cached_property
    def blocks(self) -> tuple[FeatureBlock, ...]:
        found, first = [], 0
        for part in self.parts:
            found.append(FeatureBlock(part.name, first, part.count, ("value",)))
            first += part.count
        return tuple(found)

    @cached_property
    def pixels(self) -> Pixels | None:
        """The pixels of an observation that consists of nothing else."""
        if len(self.parts) != 1 or not self.parts[0].shape:
            return None
        return Pixels(self.parts[0].shape, 0)

    def write(self, out: npt.NDArray[np.uint8], numbers: npt.NDArray[Any]) -> None:
        """Write flattened observations [..., numbers] into rows [..., obs_bytes or more]."""
        if self.pixels and numbers.dtype == np.uint8:
            out[..., : self.numbers] = numbers
            return
        floats = 4 * len(self._floats)
        if floats:
            chosen = numbers if not len(self._bytes) else numbers[..., self._floats]
            out[..., :floats].view(np.float32)[...] = chosen
        if len(self._bytes):
            packed = self.check_bytes(numbers[..., self._bytes])
            out[..., floats : floats + len(self._bytes)] = packed

    def check_bytes(self, given: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """Return the numbers that are stored as bytes as such; refuse what is none."""
        with np.errstate(invalid="ignore"):
            packed: npt.NDArray[np.uint8] = given.astype(np.uint8)
        if not (packed == given).all():
            raise self._outside(given != packed)
        return packed

    def plain(self) -> dict[str, Any]:
        """Values for a checkpoint, which `read_layout` reads; {} for unnamed floats."""
        if self == plain_layout(self.numbers):
            return {}
        found: dict[str, Any] = {"parts": [part.plain() for part in self.parts]}
        return found | ({"names": list(self.names)} if self.names else {})

    @cached_property
    def _by_number(self) -> list[LayoutPart]:
        return [part for part in self.parts for _ in range(part.count)]

    @cached_property
    def _floats(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero([part.dtype == FLOATS for part in self._by_number])

    @cached_property
    def _bytes(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero([part.dtype == BYTES for part in self._by_number])

    def _names(self) -> Sequence[str]:
        if self.names:
            return self.names
        return [f"{part.name}[{i}]" for part in self.parts for i in range(part.count)]

    def _outside(self, wrong: npt.NDArray[np.bool_]) -> SparringError:
        number = self._bytes[np.argwhere(wrong)[0][-1]]
        return SparringError(
            f"an observation lies outside of its space: {self._names()[number]} is not an integer "
            "within 0..255, as its space says"
        )


def plain_layout(numbers: int) -> ObsLayout:
    """Unnamed floats."""
    return ObsLayout((LayoutPart(ALL, numbers),))


def read_layout(
    numbers: int, parts: Sequence[Sequence[Any]] = (), names: Sequence[str] = ()
) -> ObsLayout:
    """Read a layout from a checkpoint."""
    if not parts:
        return plain_layout(numbers)
    read = tuple(
        LayoutPart(
            str(name),
            int(count),
            str(kind),
            float(by),
            tuple(rest[0]) if rest else (),
            tuple((int(one), int(first)) for one, first in rest[1]) if rest[1:] else (),
        )
        for name, count, kind, by, *rest in parts
    )
    return ObsLayout(read, tuple(names))
