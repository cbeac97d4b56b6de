"""Settings that change during a run: a value as a function of the run's progress.

Written as a number, or as points: `0:1.0,2e6:0.2` in decisions of the learner, `0%:1.0,100%:0.2` in
percent of the run, `0ep:20,600ep:1.5` in finished games. Between two points the value is
interpolated linearly; with ` stepped` after the points it stays until the next one. Files and
Python may give a list of pairs instead, `[[0, 1.0], [2e6, 0.2]]` or `[["0%", 1.0], ["100%", 0.2]]`.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal, Self

from sparring.errors import ConfigError

STEPPED = " stepped"
LARGE = 1e16
"""From here on a float has no decimals, and is written with an exponent."""
HOW = (
    "write a number, 0:1.0,2e6:0.2 (decisions), 0%:1.0,100%:0.2 (progress) or "
    "0ep:1.0,600ep:0.2 (finished games)"
)
By = Literal["decisions", "progress", "episodes"]
"""Unit of a schedule's points."""
UNITS: dict[By, str] = {"decisions": "", "progress": "%", "episodes": "ep"}


@dataclass(frozen=True)
class Moment:
    """Progress of a run."""

    decisions: int
    """Decisions of the learner so far."""
    progress: float
    """From 0 to 1 over the whole run."""
    episodes: int = 0
    """Finished games so far."""


class Schedule:
    """A value over time. It is constant before the first and after the last point."""

    __slots__ = ("_by", "_points", "_stepped")

    def __init__(
        self,
        points: Sequence[tuple[float, float]],
        *,
        by: By = "decisions",
        stepped: bool = False,
    ) -> None:
        """points: (position, value) pairs; positions in decisions, games, or 0..1 of the run."""
        self._points = tuple((float(at), float(value)) for at, value in points)
        self._by, self._stepped = by, stepped
        if not self._points:
            raise ConfigError("a schedule needs at least one point")
        if not all(math.isfinite(number) for point in self._points for number in point):
            raise ConfigError(f"{self}: give finite numbers")
        if any(after <= before for (before, _), (after, _) in pairwise(self._points)):
            raise ConfigError(f"{self}: points have to be in ascending order")
        last = 1.0 if by == "progress" else math.inf
        if self._points[0][0] < 0 or self._points[-1][0] > last:
            raise ConfigError(f"{self}: a point lies outside of the run")

    @classmethod
    def constant(cls, value: float) -> Schedule:
        return cls(((0.0, value),))

    @classmethod
    def line(cls, start: float, end: float) -> Schedule:
        """A straight line over the whole run."""
        return cls(((0.0, start), (1.0, end)), by="progress")

    @classmethod
    def read(cls, given: Any, where: str = "") -> Schedule:
        """Read a number, a text, or a list of pairs."""
        if isinstance(given, Schedule):
            return given
        try:
            if isinstance(given, bool):
                raise TypeError
            if isinstance(given, int | float):
                return cls.constant(given)
            if isinstance(given, str):
                return cls._from_text(given.strip())
            return cls._from_pairs(given, stepped=False)
        except ConfigError as wrong:
            raise ConfigError(f"{where}: {wrong}" if where else str(wrong)) from None
        except (TypeError, ValueError):
            text = f"{given!r} is not a schedule; {HOW}"
            raise ConfigError(f"{where}: {text}" if where else text) from None

    @classmethod
    def _from_text(cls, text: str) -> Schedule:
        stepped = text.endswith(STEPPED)
        text = text.removesuffix(STEPPED).strip()
        if text.startswith("["):
            return cls._from_pairs(json.loads(text), stepped=stepped)
        if ":" not in text:
            return cls.constant(float(text))
        return cls._from_pairs([point.split(":") for point in text.split(",")], stepped=stepped)

    @classmethod
    def _from_pairs(cls, pairs: Sequence[Sequence[Any]], *, stepped: bool) -> Schedule:
        points = [(str(at).strip(), float(value)) for at, value in pairs]
        units = {unit_of(at) for at, _ in points}
        if len(units) > 1:
            raise ConfigError(
                "points are either all decisions, all percent of the run (%) or all games (ep)"
            )
        by = units.pop() if units else "decisions"
        factor = 100.0 if by == "progress" else 1.0
        read = [(float(at.removesuffix(UNITS[by])) / factor, value) for at, value in points]
        return cls(read, by=by, stepped=stepped)

    def at(self, moment: Moment) -> float:
        """The value at some moment of a run."""
        position = float(getattr(moment, self._by))
        points = self._points
        after = bisect_right(points, position, key=lambda point: point[0])
        if after == 0:
            return points[0][1]
        (start, value), following = points[after - 1], points[after : after + 1]
        if self._stepped or not following:
            return value
        ((end, target),) = following
        return value + (target - value) * (position - start) / (end - start)

    @property
    def values(self) -> tuple[float, ...]:
        """Values of all points, which bound the values between them."""
        return tuple(value for _, value in self._points)

    @property
    def positions(self) -> tuple[float, ...]:
        """Positions of all points."""
        return tuple(at for at, _ in self._points)

    @property
    def by(self) -> By:
        """Unit of its points; "decisions" for a constant."""
        return self._by if self.changes else "decisions"

    @property
    def changes(self) -> bool:
        """Whether it has more than one point."""
        return len(self._points) > 1

    def scaled(self, factor: float) -> Schedule:
        """The same schedule with every value multiplied."""
        points = [(at, value * factor) for at, value in self._points]
        return Schedule(points, by=self._by, stepped=self._stepped)

    def shifted(self, origin: Moment, *, decisions: int = 0, episodes: int = 0) -> Schedule:
        """The schedule of a part of the run that begins at `origin`, in units of the whole run.

        decisions, episodes: length of the part, as far as it is known; percent become shares of the
        first of them that is.
        """
        if not self.changes:
            return self
        by, length = self._by, 1
        if by == "progress":
            by, length = ("decisions", decisions) if decisions else ("episodes", episodes)
            if not length:
                raise ConfigError(
                    f"{self}: percent (%) need a phase that has an end; give points in decisions "
                    "or games (ep)"
                )
        begun = getattr(origin, by)
        points = [(begun + at * length, value) for at, value in self._points]
        return Schedule(points, by=by, stepped=self._stepped)

    def plain(self) -> float | str:
        """The value of a configuration file: a number or a text."""
        return self._points[0][1] if len(self._points) == 1 else str(self)

    def __str__(self) -> str:
        if len(self._points) == 1:
            return format_number(self._points[0][1])
        unit = UNITS[self._by]
        factor = 100 if self._by == "progress" else 1
        positions = (f"{format_number(at * factor)}{unit}:{value!r}" for at, value in self._points)
        return ",".join(positions) + (STEPPED if self._stepped else "")

    def __repr__(self) -> str:
        return f"Schedule.read({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        if not self.changes:
            return self.values
        return self._points, self._by, self._stepped


def unit_of(place: str) -> By:
    """Unit of a point, by its suffix."""
    if place.endswith("%"):
        return "progress"
    return "episodes" if place.endswith("ep") else "decisions"


def format_number(number: float) -> str:
    """A number without a trailing .0, large ones as 1e30; reading it gives the same number."""
    if number.is_integer() and abs(number) < LARGE:
        return str(int(number))
    return repr(number).replace("e+", "e")


def format_rounded(number: float) -> str:
    """A rounded number for messages: 1e9, 0.0003, 1e-5."""
    digits, power, exponent = f"{number:g}".partition("e")
    return f"{digits}e{int(exponent)}" if power else digits


class ScheduledValues:
    """Base of dataclasses of numbers, each named as the schedule that it is read from."""

    @classmethod
    def at(cls, config: Any, moment: Moment) -> Self:
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return cls(**{name: getattr(config, name).at(moment) for name in names})
