"""Features of an observation: byte offset, type and divisor of every number."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

Run = tuple[int, int, int, int, float]
"""Consecutive features of one type: first feature, count, byte offset, type, divisor."""


@dataclass(frozen=True)
class Feature:
    """One number of an observation: its bytes, divided by `divisor`."""

    name: str
    dtype: str
    offset: int
    divisor: float

    @property
    def bytes(self) -> range:
        """Byte range in a row."""
        return range(self.offset, self.offset + np.dtype(self.dtype).itemsize)


@dataclass(frozen=True)
class FeatureBlock:
    """A named matrix of features: first..first + rows * columns - 1."""

    name: str
    first: int
    rows: int
    columns: tuple[str, ...]


def runs_of(features: Sequence[Feature], seen: Container[int] | None = None) -> list[Run]:
    """Merge consecutive features of one type, as the native core takes them.

    seen: indices of the features to read; None: all.
    """
    codes = {"uint8": 0, "int8": 1, "int16": 3, "float32": 7}
    runs: list[Run] = []
    for i, f in enumerate(features):
        if seen is not None and i not in seen:
            continue
        code, size = codes[f.dtype], np.dtype(f.dtype).itemsize
        if runs:
            first, count, offset, last, divisor = runs[-1]
            expected = first + count, last, divisor, offset + count * size
            if expected == (i, code, f.divisor, f.offset):
                runs[-1] = (first, count + 1, offset, last, divisor)
                continue
        runs.append((i, 1, f.offset, code, f.divisor))
    return runs
