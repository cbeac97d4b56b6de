"""A long series in few numbers, for sparklines."""

from __future__ import annotations

LIMIT = 64


class Trail:
    """A series from its beginning: where it grows too long, neighbours become their mean."""

    def __init__(self) -> None:
        self._values: list[float] = []
        self._each, self._sum, self._count = 1, 0.0, 0

    def add(self, value: float) -> None:
        """Go on with a value."""
        self._sum, self._count = self._sum + value, self._count + 1
        if self._count < self._each:
            return
        self._values.append(self._sum / self._count)
        self._sum, self._count = 0.0, 0
        if len(self._values) == LIMIT:
            pairs = zip(self._values[::2], self._values[1::2], strict=True)
            self._values = [(a + b) / 2 for a, b in pairs]
            self._each *= 2

    def values(self) -> list[float]:
        """The series; the last number may stand for fewer values than the others."""
        return [*self._values, self._sum / self._count] if self._count else list(self._values)
