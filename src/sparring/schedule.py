"""A setting that changes while a run goes on: a value as a function of how far the run has come.

Written as a number, or as points: `0:1.0,2e6:0.2` in the learner's decisions, `0%:1.0,100%:0.2` in
shares of the run, `0ep:20,600ep:1.5` in finished games. Between two points the value goes in a
straight line; with ` stepped` behind the points it stays until the next one. Files and Python may
give a list of pairs instead, `[[0, 1.0], [2e6, 0.2]]` or `[["0%", 1.0], ["100%", 0.2]]`.
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
"""From here on a float has no digits behind the point, and nobody writes all those before it."""
HOW = (
    "write a number, 0:1.0,2e6:0.2 (decisions), 0%:1.0,100%:0.2 (progress) or "
    "0ep:1.0,600ep:0.2 (finished games)"
)
By = Literal["decisions", "progress", "episodes"]
"""What the places of a schedule's points count."""
UNITS: dict[By, str] = {"decisions": "", "progress": "%", "episodes": "ep"}


@dataclass(frozen=True)
class Moment:
    """How far a run has come."""

    decisions: int
    """The learner's own, so far."""
    progress: float
    """From 0 to 1 over the whole run."""
    episodes: int = 0
    """Games finished so far."""


class Schedule:
    """A value over time. Before the first point it is the first value, after the last the last."""

    __slots__ = ("_by", "_points", "_stepped")

    def __init__(
        self,
        points: Sequence[tuple[float, float]],
        *,
        by: By = "decisions",
        stepped: bool = False,
    ) -> None:
        """Take (place, value) pairs; places are decisions, games, or progress from 0 to 1."""
        self._points = tuple((float(at), float(value)) for at, value in points)
        self._by, self._stepped = by, stepped
        if not self._points:
            raise ConfigError("a schedule needs at least one point")
        if not all(math.isfinite(number) for point in self._points for number in point):
            raise ConfigError(f"{self}: give finite numbers")
        if any(after <= before for (before, _), (after, _) in pairwise(self._points)):
            raise ConfigError(f"{self}: points have to follow one another")
        most = 1.0 if by == "progress" else math.inf
        if self._points[0][0] < 0 or self._points[-1][0] > most:
            raise ConfigError(f"{self}: a point lies outside of the run")

    @classmethod
    def constant(cls, value: float) -> Schedule:
        """The same value all the time."""
        return cls(((0.0, value),))

    @classmethod
    def line(cls, start: float, end: float) -> Schedule:
        """A straight line over the whole run."""
        return cls(((0.0, start), (1.0, end)), by="progress")

    @classmethod
    def read(cls, given: Any, where: str = "") -> Schedule:
        """Read what a user wrote: a number, text, or a list of pairs."""
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
            text = f"{given!r} is no schedule; {HOW}"
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
                "points are either all decisions, all shares (%) of the run or all games (ep)"
            )
        by = units.pop() if units else "decisions"
        factor = 100.0 if by == "progress" else 1.0
        read = [(float(at.removesuffix(UNITS[by])) / factor, value) for at, value in points]
        return cls(read, by=by, stepped=stepped)

    def at(self, moment: Moment) -> float:
        """The value at some moment of a run."""
        place = float(getattr(moment, self._by))
        points = self._points
        after = bisect_right(points, place, key=lambda point: point[0])
        if after == 0:
            return points[0][1]
        (start, value), following = points[after - 1], points[after : after + 1]
        if self._stepped or not following:
            return value
        ((end, target),) = following
        return value + (target - value) * (place - start) / (end - start)

    @property
    def values(self) -> tuple[float, ...]:
        """Of all points; what lies between them is never beyond them."""
        return tuple(value for _, value in self._points)

    @property
    def places(self) -> tuple[float, ...]:
        """Of all points."""
        return tuple(at for at, _ in self._points)

    @property
    def by(self) -> By:
        """What its points count; of a single point, which holds all the time, nothing."""
        return self._by if self.changes else "decisions"

    @property
    def changes(self) -> bool:
        """Whether it has more than one value in it."""
        return len(self._points) > 1

    def scaled(self, factor: float) -> Schedule:
        """The same course with every value multiplied."""
        points = [(at, value * factor) for at, value in self._points]
        return Schedule(points, by=self._by, stepped=self._stepped)

    def shifted(self, origin: Moment, *, decisions: int = 0, episodes: int = 0) -> Schedule:
        """The schedule of a stretch of the run that begins at `origin`, on the clock of the run.

        decisions, episodes: how long the stretch is, as far as that is known; shares become shares
        of the first of them that is.
        """
        if not self.changes:
            return self
        by, length = self._by, 1
        if by == "progress":
            by, length = ("decisions", decisions) if decisions else ("episodes", episodes)
            if not length:
                raise ConfigError(
                    f"{self}: shares (%) need a stretch that has an end; give points in decisions "
                    "or games (ep)"
                )
        begun = getattr(origin, by)
        points = [(begun + at * length, value) for at, value in self._points]
        return Schedule(points, by=by, stepped=self._stepped)

    def plain(self) -> float | str:
        """The same as a configuration file holds it."""
        return self._points[0][1] if len(self._points) == 1 else str(self)

    def __str__(self) -> str:
        if len(self._points) == 1:
            return format_number(self._points[0][1])
        unit = UNITS[self._by]
        factor = 100 if self._by == "progress" else 1
        places = (f"{format_number(at * factor)}{unit}:{value!r}" for at, value in self._points)
        return ",".join(places) + (STEPPED if self._stepped else "")

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
    """What a place counts, by its last letters."""
    if place.endswith("%"):
        return "progress"
    return "episodes" if place.endswith("ep") else "decisions"


def format_number(number: float) -> str:
    """A number without a trailing .0, large ones as 1e30; what is read back is the same."""
    if number.is_integer() and abs(number) < LARGE:
        return str(int(number))
    return repr(number).replace("e+", "e")


def format_rounded(number: float) -> str:
    """A number in a sentence, as people type it: 1e9, 0.0003, 1e-5."""
    digits, power, exponent = f"{number:g}".partition("e")
    return f"{digits}e{int(exponent)}" if power else digits


class ScheduledValues:
    """A dataclass of numbers, each named as the schedule that it is read from."""

    @classmethod
    def at(cls, config: Any, moment: Moment) -> Self:
        """Read every schedule."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return cls(**{name: getattr(config, name).at(moment) for name in names})
