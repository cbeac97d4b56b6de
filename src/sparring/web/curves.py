"""Curves of a run for the web app: downsampled, or only the new points."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparring.store.folders import mode_of
from sparring.store.sqlite import EmptyDatabaseError, open_for_reading
from sparring.training.records.metrics import FILE, TABLE, MetricsError, explain

MAX_POINTS = 1000
"""Per curve; a screen has no more columns."""
MAX_CURVES = 5000
LIMIT_S = 20.0
"""CPU time limit of reading the curves of one run."""
READ_ERRORS = (sqlite3.Error, TypeError, ValueError, OverflowError)
"""Errors of a damaged file."""
NAMES = """
WITH RECURSIVE names(name) AS (
  SELECT min(name) FROM metrics
  UNION ALL
  SELECT (SELECT min(name) FROM metrics WHERE name > names.name) FROM names
  WHERE name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL
"""
"""Finds each next name by index, where DISTINCT would read every row."""
POINTS = "SELECT update_number, seconds, value FROM metrics WHERE name = ? AND update_number >= ?"
ENDS = """
SELECT min(update_number), max(update_number) FROM metrics WHERE name = ? AND update_number >= ?
"""
EXTREMES = """
SELECT update_number, seconds, {which}(value) FROM metrics WHERE name = ? AND update_number >= ?
GROUP BY (update_number - ?) * ? / ?
"""
"""The lowest or highest value of every bucket, with its update."""

Point = tuple[int, float, float | None]


def read_curves(
    run: Path, *, after: int = -1, max_points: int = MAX_POINTS, only: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the curves of a run after an update, each with at max_points `max_points` points.

    Each curve is read on its own, so that the writing process never waits long.
    only: prefixes of names.
    """
    path = run / FILE
    if not mode_of(path):
        return {"last": -1, "curves": {}}
    try:
        with open_for_reading(path, TABLE, timeout_s=LIMIT_S) as db:
            names = read_names(db)
            wanted = [name for name in names if not only or name.startswith(tuple(only))]
            curves = {name: read_downsampled(db, name, after + 1, max_points) for name in wanted}
        last = max((points[-1][0] for points in curves.values() if points), default=after)
        return {"last": last, "curves": {name: as_columns(p) for name, p in curves.items() if p}}
    except EmptyDatabaseError:
        return {"last": after, "curves": {}}
    except READ_ERRORS as wrong:
        raise MetricsError(read_error(run, wrong)) from wrong


def read_names(db: sqlite3.Connection) -> list[str]:
    found = [name for (name,) in db.execute(NAMES).fetchmany(MAX_CURVES + 1)]
    if len(found) > MAX_CURVES:
        raise ValueError(f"more than {MAX_CURVES} curves")
    return [name for name in found if isinstance(name, str)]


def read_downsampled(db: sqlite3.Connection, name: str, first: int, max_points: int) -> list[Point]:
    """Return the first and last point of a curve, and the extremes of every bucket."""

    def ask(query: str, *values: Any) -> list[Any]:
        return db.execute(query, values).fetchall()

    begin, end = ask(ENDS, name, first)[0]
    if begin is None:
        return []
    span = end - begin + 1
    if span <= max_points:
        return ask(POINTS, name, first)
    buckets = (max_points - 2) // 2
    found: set[Point] = set()
    for which in ("min", "max"):
        query = EXTREMES.format(which=which)
        found.update(ask(query, name, first, begin, buckets, span))
    ends = f"{POINTS} AND update_number IN ({int(begin)}, {int(end)})"
    found.update(ask(ends, name, first))
    return sorted(found, key=lambda point: point[0])


def as_columns(points: Sequence[Point]) -> dict[str, list[Any]]:
    """Return points as lists by column; NaN and infinity become null."""
    updates, seconds, values = zip(*points, strict=True)
    return {
        "update": list(updates),
        "seconds": [round(second, 3) for second in seconds],
        "value": [v if v is not None and math.isfinite(v) else None for v in values],
    }


class CurveFollower:
    """Reads the points of all curves since the last read.

    Evaluations end later than the update that they measure, so every curve has its own end.
    """

    def __init__(self, run: Path) -> None:
        self.path = run / FILE
        self.ends: dict[str, int] = {}
        """The last update read, by curve."""
        self.started = False

    def read_new(self) -> tuple[dict[str, Any], bool]:
        """Return new points by curve, and whether old ones are gone: a run was reset."""
        if not mode_of(self.path):
            return {}, False
        try:
            with open_for_reading(self.path, TABLE, timeout_s=LIMIT_S) as db:
                return self.read(db)
        except EmptyDatabaseError:
            return {}, False
        except READ_ERRORS as wrong:
            raise MetricsError(read_error(self.path.parent, wrong)) from wrong

    def read(self, db: sqlite3.Connection) -> tuple[dict[str, Any], bool]:
        """Return the new points in a database."""

        def fetch(query: str, *values: Any) -> list[Any]:
            return db.execute(query, values).fetchall()

        names = read_names(db)
        new_points: dict[str, list[Point]] = {}
        was_reset = any(name not in names for name in self.ends)
        for name in names:
            seen = self.ends.get(name)
            if seen is None and not self.started:  # the page has the old points
                self.ends[name] = fetch(ENDS, name, 0)[0][1]
                continue
            points = fetch(POINTS, name, -1 if seen is None else seen)
            if seen is not None and (not points or points[0][0] != seen):
                was_reset = True
                continue
            new = points if seen is None else points[1:]
            if new:
                new_points[name] = new
                self.ends[name] = new[-1][0]
        self.started = True
        if was_reset:
            self.ends, self.started = {}, False
            self.read(db)
            return {}, True
        return {name: as_columns(points) for name, points in new_points.items()}, False


def read_error(run: Path, wrong: Exception) -> str:
    """Return the error of a run's curves without the path of the run."""
    return explain(Path(run.name), wrong)
