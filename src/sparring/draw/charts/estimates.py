"""Values with their intervals, one line each: what a comparison found."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sparring.draw.charts.axes import Form, label, ticks


@dataclass(frozen=True)
class Estimate:
    """A value, its interval if there is one, and the single numbers that it comes from."""

    name: str
    colour: int
    value: float
    low: float | None = None
    high: float | None = None
    points: tuple[float, ...] = ()

    def shown(self, form: Form) -> str:
        """The value as text, with its interval."""
        text = label(self.value, form)
        if self.low is None or self.high is None:
            return text
        return f"{text} ({label(self.low, form)} .. {label(self.high, form)})"


@dataclass(frozen=True)
class Estimates:
    """Estimates on a common axis from left to right."""

    title: str
    rows: tuple[Estimate, ...]
    form: Form = "number"
    span: tuple[float, float] | None = None
    """The values from left to right. None: what the rows span."""
    guide: float | None = None
    """A value that means no difference."""

    @property
    def x_range(self) -> tuple[float, float]:
        """The values at the left and at the right."""
        if self.span:
            return self.span
        ends = [(row.value, row.low, row.high, *row.points) for row in self.rows]
        values = [v for row in ends for v in row if v is not None and math.isfinite(v)]
        if not values:
            return 0.0, 1.0
        low, high = min(values), max(values)
        room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
        low, high = low - room, high + room
        return (max(low, 0.0), min(high, 1.0)) if self.form == "percent" else (low, high)

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """Values to be named below."""
        low, high = self.x_range
        at = ticks(low, high, 4)
        step = at[1] - at[0] if len(at) > 1 else high - low
        return [(value, label(value, self.form, step)) for value in at]
