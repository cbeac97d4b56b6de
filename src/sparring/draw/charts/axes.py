"""Axes of charts: ticks at round numbers, labels, and the x values of curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Curve = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Update numbers, seconds of training, values."""
Floats = npt.NDArray[np.float64]
Form = Literal["percent", "rate", "number"]
By = Literal["minutes", "decisions", "updates"]
Kind = Literal["games", "threads", "workers"]
"""Categorical axes."""

CLOCK = "charts/decisions"
"""The curve with the time and number of decisions of every update."""


@dataclass(frozen=True)
class Axis:
    """A horizontal axis from 0 to `end`."""

    by: By | Kind
    end: float
    names: tuple[str, ...] = ()
    """Categories at 0.5, 1.5, 2.5 and so on."""

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(x, label) of the ticks."""
        if self.names:
            return [(at + 0.5, name) for at, name in enumerate(self.names)]
        form: Form = "number" if self.by == "minutes" else "rate"
        found = named_ticks(0.0, self.end, 5, form)
        if self.by == "updates":  # there is no half of one
            found = [(value, name) for value, name in found if value == int(value)]
        return [(0.0, "0 min" if self.by == "minutes" else "0"), *found[1:]]

    @property
    def caption(self) -> str:
        """Label of the axis; minutes have their unit at the ticks."""
        return "" if self.by == "minutes" else self.by


@dataclass(frozen=True)
class AxisMark:
    """A named moment of a run: the start of a phase of its curriculum."""

    x: float
    name: str


def axis_of(curves: Mapping[str, Curve], by: By) -> Axis:
    return Axis(by, max((float(x.max()) for _, x, _ in curves.values()), default=0.0) or 1.0)


def place_on_axis(curves: Mapping[str, Curve], by: By) -> dict[str, Curve]:
    """Return the curves with x values of an axis instead of seconds.

    An evaluation is placed at the time of its checkpoint, not of its result.
    """
    clock = curves.get(CLOCK)
    found: dict[str, Curve] = {}
    for name, (updates, seconds, values) in curves.items():
        if by == "updates":
            x = updates.astype(np.float64)
        elif by == "minutes":
            late = clock is not None and name.startswith("eval/")
            x = at_updates(clock, updates, 1) / 60 if clock and late else seconds / 60
        else:
            x = at_updates(clock, updates, 2) if clock else np.full(len(updates), np.nan)
        if np.isfinite(x).all():
            found[name] = updates, x, values
    return found


def at_updates(clock: Curve, updates: npt.NDArray[np.int64], column: Literal[1, 2]) -> Floats:
    """Return seconds or decisions after some updates; 0 before the first."""
    known, column_values = clock[0], clock[column]
    found: Floats = np.interp(updates, np.append(0, known), np.append(0.0, column_values))
    return found


def ticks(low: float, high: float, about: int) -> list[float]:
    """Return round numbers between two values."""
    raw = max((high - low) / about, 1e-12)
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1, 2, 5, 10) if m * size >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [0.0 if n == 0 else n * step for n in range(first, last + 1)]


def named_ticks(low: float, high: float, about: int, form: Form) -> list[tuple[float, str]]:
    """Return round numbers between two values with their labels."""
    at = ticks(low, high, about)
    step = at[1] - at[0] if len(at) > 1 else high - low
    return [(value, label(value, form, step)) for value in at]


def padded_range(values: Iterable[float], share: float = 0.08) -> tuple[float, float]:
    """Return the range of the finite values with some padding."""
    there = [float(value) for value in values if math.isfinite(value)]
    if not there:
        return 0.0, 1.0
    low, high = min(there), max(there)
    room = share * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + room


def label(value: float, form: Form, step: float = 0.0) -> str:
    """Return a number as text; `step` sets the precision."""
    if not math.isfinite(value):
        return "–"
    if form == "percent":
        fine = not step or step < 0.00999
        return f"{100 * value:.1f}%" if fine else f"{100 * value:.0f}%"
    if form == "rate" and abs(value) >= 1000:
        sizes = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
        size, unit = next(pair for pair in sizes if abs(value) >= pair[0])
        return f"{value / size:.3g}{unit}"
    if not step:
        return f"{value:.4g}"
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:.{digits}f}" if digits <= 4 else f"{value:.3g}"
