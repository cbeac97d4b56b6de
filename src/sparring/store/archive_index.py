"""Index of a run's snapshots in SQLite: entries, results and ratings over time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sparring.store.errors import ArchiveError
from sparring.store.files import check_regular
from sparring.store.folders import LEAGUE, SNAPSHOT
from sparring.store.schema import (
    MAX_INT,
    Validator,
    integer,
    number,
    optional,
    string,
    string_matching,
)
from sparring.store.sqlite import EmptyDatabaseError, open_for_reading

LEAGUE_FILE = "league.sqlite"
TABLES = ("snapshots", "players", "results", "ratings")
BUSY_S = 10.0
"""Seconds that a writer waits for another one."""
MAX_BYTES = 64 * 2**30
"""Largest index that is read."""
MAX_MESSAGE_CHARS = 300
"""Longest text of SQLite that an error repeats."""
FORMAT = 1
"""Version of the tables; readers refuse other versions."""
TRAINING, MATCH = "training", "match"
"""Kinds of results: games of training, or matches in which players rotate seats."""
LEARNER_NAME = "self"
"""Name of the learner among rated players."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS snapshots (
  number INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL,
  member TEXT NOT NULL,
  update_number INTEGER NOT NULL,
  decisions INTEGER NOT NULL,
  seconds REAL NOT NULL,
  bytes INTEGER NOT NULL,
  removed_at INTEGER
);
CREATE TABLE IF NOT EXISTS players (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS results (
  kind TEXT NOT NULL,
  member TEXT NOT NULL,
  player INTEGER NOT NULL,
  update_number INTEGER NOT NULL,
  decisions INTEGER NOT NULL,
  wins INTEGER NOT NULL,
  draws INTEGER NOT NULL,
  losses INTEGER NOT NULL,
  PRIMARY KEY (kind, member, player, update_number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ratings (
  player INTEGER NOT NULL,
  update_number INTEGER NOT NULL,
  decisions INTEGER NOT NULL,
  rating REAL NOT NULL,
  low REAL NOT NULL,
  high REAL NOT NULL,
  PRIMARY KEY (player, update_number)
) WITHOUT ROWID;
"""

HASH = string_matching(r"[0-9a-f]{64}", "the hash of a snapshot")
COUNT = integer(-MAX_INT)
ENTRY_COLUMNS = (HASH, integer(), string, string, COUNT, COUNT, number, integer(), optional(COUNT))
"""Validators of a snapshot's columns, in the order of `SnapshotEntry`."""


@dataclass(frozen=True)
class SnapshotEntry:
    """A snapshot: frozen weights of an earlier update."""

    hash: str
    number: int
    """0, 1, 2, ... in the order of storing."""
    name: str
    """Name for commands: RUN/past/NUMBER."""
    role: str
    """main, exploiter, league-exploiter, or fixed (a policy that line-ups name)."""
    member: str
    """The run that trained it."""
    update: int
    decisions: int
    seconds: float
    bytes: int
    removed: bool
    """Whether its file is deleted, or will be once no checkpoint needs it."""


class Tally(NamedTuple):
    """Results of the learner."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        return sum(self)

    @property
    def share(self) -> float | None:
        """Win share; a draw counts half. None without games."""
        return (self.wins + self.draws / 2) / self.games if self.games else None


class Result(NamedTuple):
    """Result of the learner against an opponent since the previous result."""

    update: int
    decisions: int
    member: str
    opponent: str
    """Hash of a snapshot or name of a bot."""
    tally: Tally


class RatingRow(NamedTuple):
    """Rating of a player after an update."""

    update: int
    decisions: int
    player: str
    """Hash of a snapshot, name of a bot, or `self`."""
    rating: float
    low: float
    high: float


class ArchiveIndex:
    """Reads snapshots, results and ratings of a run, also while it trains."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    @property
    def path(self) -> Path:
        return self.folder / LEAGUE_FILE

    def file(self, content: str) -> Path:
        """Return the file of a snapshot; raises ArchiveError if `content` is no hash."""
        self._validate((content,), (HASH,))
        return self.folder / LEAGUE / f"{content}{SNAPSHOT}"

    def entries(self, *, removed: bool = False) -> list[SnapshotEntry]:
        """Return the snapshots in order. removed: include removed ones."""
        which = "" if removed else "WHERE removed_at IS NULL"
        return self._entries(f"{which} ORDER BY number")

    def entries_at(self, update: int) -> list[SnapshotEntry]:
        """Return the snapshots that existed after an update, also those removed since."""
        which = "WHERE update_number <= ? AND (removed_at IS NULL OR removed_at > ?)"
        return self._entries(f"{which} ORDER BY number", (update, update))

    def by_number(self, number: int) -> SnapshotEntry | None:
        """Return the snapshot with a number, None if there never was one."""
        return next(iter(self._entries("WHERE number = ?", (number,))), None)

    def by_hash(self, content: str) -> SnapshotEntry | None:
        """Return the snapshot with a hash, None if there never was one."""
        return next(iter(self._entries("WHERE hash = ?", (content,))), None)

    def _entries(self, which: str, values: Sequence[Any] = ()) -> list[SnapshotEntry]:
        columns = "hash, number, role, member, update_number, decisions, seconds, bytes, removed_at"
        run = self.folder.absolute().name
        entries = []
        for row in self._read(f"SELECT {columns} FROM snapshots {which}", values, ENTRY_COLUMNS):
            content, number, role, member, update, decisions, seconds, size, removed_at = row
            when = (update, decisions, seconds)
            name = f"{run}/past/{number}"
            entry = SnapshotEntry(
                content, number, name, role, member, *when, size, removed_at is not None
            )
            entries.append(entry)
        return entries

    def results(
        self, kind: str = TRAINING, *, member: str | None = None, after: int = -1
    ) -> list[Result]:
        """Return the results of the learner after an update, over time."""
        rows = self._read(
            "SELECT update_number, decisions, member, name, wins, draws, losses "
            f"FROM results JOIN players ON id = player {RESULT_FILTER} ORDER BY update_number, id",
            (kind, member, member, after),
            (COUNT, COUNT, string, string, integer(), integer(), integer()),
        )
        return [
            Result(update, decisions, by, opponent, Tally(*counts))
            for update, decisions, by, opponent, *counts in rows
        ]

    def totals(
        self, kind: str = TRAINING, *, member: str | None = None, after: int = -1
    ) -> dict[str, Tally]:
        """Return the sum of the results by opponent."""
        rows = self._read(
            "SELECT name, SUM(wins), SUM(draws), SUM(losses) "
            f"FROM results JOIN players ON id = player {RESULT_FILTER} GROUP BY id ORDER BY id",
            (kind, member, member, after),
            (string, integer(), integer(), integer()),
        )
        return {name: Tally(*counts) for name, *counts in rows}

    def ratings(self) -> list[RatingRow]:
        """Return every rating over time."""
        return [
            RatingRow(*row)
            for row in self._read(
                "SELECT update_number, decisions, name, rating, low, high "
                "FROM ratings JOIN players ON id = player ORDER BY update_number, id",
                (),
                (COUNT, COUNT, string, number, number, number),
            )
        ]

    def last_ratings(self) -> dict[str, RatingRow]:
        """Return the last rating of every player."""
        return {rated.player: rated for rated in self.ratings()}

    def _read(
        self, query: str, values: Iterable[Any], validators: Sequence[Validator]
    ) -> list[tuple[Any, ...]]:
        """Return validated rows: SQLite does not enforce column types."""
        if not self.path.exists():
            return []
        try:
            check_regular(self.path, MAX_BYTES, within=self.folder)
            rows = fetch_rows(self.path, query, tuple(values))
        except (sqlite3.Error, OSError) as error:
            raise ArchiveError(describe_error(self.folder, error)) from error
        except UnicodeDecodeError as error:
            raise ArchiveError(describe_error(self.folder, f"malformed, {error}")) from error
        for row in rows:
            self._validate(row, validators)
        return rows

    def _validate(self, row: Sequence[Any], validators: Sequence[Validator]) -> None:
        try:
            for value, validate in zip(row, validators, strict=True):
                validate(value, "a value")
        except ValueError as error:
            raise ArchiveError(describe_error(self.folder, f"malformed, {error}")) from None


RESULT_FILTER = "WHERE kind = ? AND (? IS NULL OR member = ?) AND update_number > ?"


def fetch_rows(path: Path, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the rows of a query, also while another process writes."""
    try:
        with open_for_reading(path, *TABLES) as db:
            check_format(path, db)
            return db.execute(query, values).fetchall()
    except EmptyDatabaseError:
        return []


def check_format(path: Path, db: sqlite3.Connection) -> None:
    ((version,),) = db.execute("PRAGMA user_version").fetchall()
    if version not in (0, FORMAT):
        raise ArchiveError(
            f"{path} has format {version}, this sparring reads format {FORMAT}; use the version "
            "that wrote it"
        )


def describe_error(folder: Path, error: Exception | str) -> str:
    """Return an error text with the next step."""
    message = " ".join(
        str(getattr(error, "strerror", "") or error).split()
    )  # SQLite quotes schemas
    text = f"league of {folder}: {message[:MAX_MESSAGE_CHARS]}"
    if "full" in text or "No space" in text:
        return f"{text}; free some space on this disk"
    if any(word in text for word in ("malformed", "not a database", "decode")):
        return f"{text}; move {LEAGUE_FILE} away, the run continues without its snapshots"
    if "locked" in text:
        return f"{text}; another process is writing there"
    return f"{text}; check that the folder is there, can be written and has space"
