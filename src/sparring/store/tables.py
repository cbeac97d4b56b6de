"""SQLite files that anybody may have written: opened for reading alone, and never for long."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sparring.store.files import require_regular

BUSY_S = 5.0
"""How long a reader waits for a writer that holds the file."""
LIMIT_S = 60.0
"""Processor time that reading may take where somebody waits for all of a long run."""
MAX_BYTES = 64 * 2**30
LONGEST = 4096
"""Bytes of a value; the longest of ours is the text that makes a table."""
STEPS = 10_000
"""Instructions of SQLite between two looks at the clock."""
BESIDE = ("-wal", "-shm", "-journal")
"""Files that SQLite opens by itself."""


class EmptyError(sqlite3.DatabaseError):
    """A file without any table: whoever writes it has just begun."""


@contextmanager
def reading(path: Path, *tables: str, timeout_s: float = LIMIT_S) -> Iterator[sqlite3.Connection]:
    """Open a file that somebody may be writing; whatever is wrong with it is a `sqlite3.Error`.

    tables: those that will be read. They have to be real ones: a view may have rows without end,
        and a virtual table runs code of its own.
    timeout_s: processor time after which a query is ended; a writer is not waited for any longer.
    """
    _require_files(path)
    with closing(_opened(path, min(BUSY_S, timeout_s))) as db:
        end = time.thread_time() + timeout_s
        db.set_progress_handler(lambda: time.thread_time() > end, STEPS)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            raise EmptyError("nothing is in it yet")
        real = "SELECT rootpage > 0 FROM sqlite_master WHERE name = ? AND type = 'table'"
        for table in tables:
            if db.execute(real, (table,)).fetchone() != (1,):
                raise sqlite3.DatabaseError(f"it has no table {table}")
        try:
            yield db
        except sqlite3.OperationalError as wrong:
            if "interrupted" not in str(wrong):
                raise
            raise sqlite3.DatabaseError(f"reading it takes more than {timeout_s:g} s") from None


def _require_files(path: Path) -> None:
    try:
        require_regular(path, MAX_BYTES)
        for end in BESIDE:
            with suppress(FileNotFoundError):
                require_regular(path.with_name(path.name + end), MAX_BYTES)
    except OSError as wrong:
        raise sqlite3.DatabaseError(wrong.strerror or str(wrong)) from None


def _opened(path: Path, busy_s: float) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        return _asked(uri, busy_s)
    except sqlite3.OperationalError as wrong:
        if "locked" in str(wrong):
            raise
        # On read-only media a file in WAL mode cannot be locked, and need not be.
        wal = path.with_name(f"{path.name}-wal")
        if wal.exists() and wal.stat().st_size:
            raise
        return _asked(f"{uri}&immutable=1", busy_s)


def _asked(uri: str, busy_s: float) -> sqlite3.Connection:
    """Return a connection that has read the file's first page."""
    db = sqlite3.connect(uri, uri=True, timeout=busy_s)
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except BaseException:
        db.close()
        raise
    return db
