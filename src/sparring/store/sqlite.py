"""Read-only access to untrusted SQLite files, with limits on time and size."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sparring.store.files import check_regular

BUSY_S = 5.0
"""Seconds that a reader waits for a writer."""
LIMIT_S = 60.0
"""Default limit of CPU time for reading all metrics of a long run."""
MAX_BYTES = 64 * 2**30
MAX_VALUE_BYTES = 4096
"""Largest value; the longest of sparring is the SQL that creates a table."""
PROGRESS_STEPS = 10_000
"""SQLite instructions between two checks of the time limit."""
COMPANION_SUFFIXES = ("-wal", "-shm", "-journal")
"""Suffixes of files that SQLite opens beside the database."""


class EmptyDatabaseError(sqlite3.DatabaseError):
    """A database without tables: its writer has just begun."""


@contextmanager
def open_for_reading(
    path: Path, *tables: str, timeout_s: float = LIMIT_S
) -> Iterator[sqlite3.Connection]:
    """Open a database for reading, also while another process writes it; raises `sqlite3.Error`.

    tables: tables to be read. Views and virtual tables are refused: a view may have endless rows,
        and a virtual table runs code.
    timeout_s: CPU time after which a query is interrupted, and longest wait for a writer.
    """
    _check_files(path)
    with closing(_open_readonly(path, min(BUSY_S, timeout_s))) as db:
        end = time.thread_time() + timeout_s
        db.set_progress_handler(lambda: time.thread_time() > end, PROGRESS_STEPS)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            raise EmptyDatabaseError("it has no tables yet")
        real = "SELECT rootpage > 0 FROM sqlite_master WHERE name = ? AND type = 'table'"
        for table in tables:
            if db.execute(real, (table,)).fetchone() != (1,):
                raise sqlite3.DatabaseError(f"it has no table {table}")
        try:
            yield db
        except sqlite3.OperationalError as error:
            if "interrupted" not in str(error):
                raise
            raise sqlite3.DatabaseError(f"reading it takes more than {timeout_s:g} s") from None


def _check_files(path: Path) -> None:
    try:
        check_regular(path, MAX_BYTES)
        for end in COMPANION_SUFFIXES:
            with suppress(FileNotFoundError):
                check_regular(path.with_name(path.name + end), MAX_BYTES)
    except OSError as error:
        raise sqlite3.DatabaseError(error.strerror or str(error)) from None


def _open_readonly(path: Path, busy_s: float) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        return _connect(uri, busy_s)
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise
        # On read-only media a file in WAL mode cannot be locked, and need not be.
        wal = path.with_name(f"{path.name}-wal")
        if wal.exists() and wal.stat().st_size:
            raise
        return _connect(f"{uri}&immutable=1", busy_s)


def _connect(uri: str, busy_s: float) -> sqlite3.Connection:
    """Connect and read the first page, which raises for damaged files."""
    db = sqlite3.connect(uri, uri=True, timeout=busy_s)
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except BaseException:
        db.close()
        raise
    return db
