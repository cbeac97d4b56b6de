"""The numbers of an observation: where their bytes lie, and what divides them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

Run = tuple[int, int, int, int, float]
"""Neighboring features of one kind: first feature, count, byte offset, type, divisor."""


@dataclass(frozen=True)
class Feature:
    """One number of an observation: where its bytes lie and what divides them."""

    name: str
    dtype: str
    offset: int
    divisor: float

    @property
    def bytes(self) -> range:
        """Where it lies in a row."""
        return range(self.offset, self.offset + np.dtype(self.dtype).itemsize)


@dataclass(frozen=True)
class FeatureBlock:
    """A named part of the observation: features first..first + rows * columns - 1."""

    name: str
    first: int
    rows: int
    columns: tuple[str, ...]


def runs_of(features: Sequence[Feature], seen: Container[int] | None = None) -> list[Run]:
    """Put neighboring features of one kind together, as the native core takes them.

    seen: numbers of the features that are read; left out, all of them.
    """
    codes = {"uint8": 0, "int8": 1, "int16": 3, "float32": 7}
    runs: list[Run] = []
    for i, f in enumerate(features):
        if seen is not None and i not in seen:
            continue
        code, size = codes[f.dtype], np.dtype(f.dtype).itemsize
        if runs:
            first, count, offset, last, divisor = runs[-1]
            behind = first + count, last, divisor, offset + count * size
            if behind == (i, code, f.divisor, f.offset):
                runs[-1] = (first, count + 1, offset, last, divisor)
                continue
        runs.append((i, 1, f.offset, code, f.divisor))
    return runs
