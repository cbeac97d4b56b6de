"""Numbers over time in SQLite, from where everything that shows a run reads them."""

from __future__ import annotations

import itertools
import math
import queue
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sparring.errors import SparringError, warn
from sparring.phases import phase
from sparring.store.folders import mode_of
from sparring.store.sqlite import LIMIT_S, EmptyDatabaseError, open_for_reading
from sparring.training.records.sinks import (
    MetricsRow,
    MetricsTable,
    Sink,
    TensorBoard,
    WeightsAndBiases,
    WriteDeferredError,
)

FILE, TABLE = "metrics.sqlite", "metrics"
ROWS = f"SELECT name, update_number, seconds, value FROM {TABLE}"
BATCH_S = 1.0
"""How long values wait for company before they are written. So much a dying process loses."""
BUSY_S = 30.0
"""How long the writer waits for another program that holds the file."""
MAX_BUFFERED = 100_000
"""How many updates wait at most for a disk that has space again."""
EARLIEST = -(2**31)
"""Below any update. What is learned before a run plays has numbers below 0, the last is -1."""
DAMAGED = ("malformed", "not a database", "no table", "too big", "takes more", "not a regular")
"""Words of errors that no space on the disk would help against."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS metrics (
  update_number INTEGER NOT NULL,
  name TEXT NOT NULL,
  value REAL,
  seconds REAL NOT NULL,
  PRIMARY KEY (name, update_number)
) WITHOUT ROWID
"""

Curve = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Update numbers, seconds of training, values (NaN where the value was not finite)."""


class MetricsError(SparringError):
    """Metrics that could not be written or read."""


class MetricsWriter:
    """Takes numbers without waiting; a thread writes them in batches.

    What cannot be written, because a disk is full, is kept and tried again with the next batch:
    training continues, and a warning says so once.
    """

    def __init__(
        self,
        run_folder: Path,
        *,
        tensorboard: bool = True,
        wandb: bool = False,
        csv: bool = False,
    ) -> None:
        self.folder = run_folder
        self.nonfinite: Counter[str] = Counter()
        """How many values of each name were NaN or infinite; they are stored as NULL."""
        wanted: list[tuple[bool, Callable[[Path], Sink]]]
        wanted = [(tensorboard, TensorBoard), (wandb, WeightsAndBiases), (csv, MetricsTable)]
        self._sinks = [make(run_folder) for asked, make in wanted if asked]
        self._queue: queue.SimpleQueue[MetricsRow | threading.Event | None] = queue.SimpleQueue()
        self._unwritten: list[MetricsRow] = []
        self._deferred: set[Sink] = set()
        """Sinks that have said that a disk is full."""
        self._messages: list[str] = []
        try:
            connect(run_folder).close()
        except (sqlite3.Error, OSError) as error:
            raise MetricsError(explain(run_folder, error)) from error
        self._thread = threading.Thread(target=self._work, name="metrics", daemon=True)
        self._thread.start()

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, update: int, values: Mapping[str, float], *, seconds: float) -> None:
        """Note values of an update, `seconds` of training into the run. Never waits for a disk."""
        numbers = {name: float(value) for name, value in values.items()}
        nonfinite = [name for name, value in numbers.items() if not math.isfinite(value)]
        self.nonfinite.update(nonfinite)
        stored: dict[str, float | None] = {**numbers, **dict.fromkeys(nonfinite)}
        self._queue.put(MetricsRow(int(update), stored, float(seconds), time.time()))
        self._emit_warnings()

    def add_text(self, update: int, name: str, text: str, *, seconds: float) -> None:
        """Note words, for those who show them."""
        self._queue.put(MetricsRow(int(update), {}, float(seconds), time.time(), {name: text}))

    def flush(self) -> None:
        """Wait until everything added so far can be read."""
        written = threading.Event()
        self._queue.put(written)
        while not written.wait(0.1) and self._thread.is_alive():
            pass
        self._emit_warnings()

    def truncate_after(self, update: int) -> None:
        """Forget what came after an update, before a run goes on from there."""
        self.flush()
        try:
            with closing(connect(self.folder)) as db, db:
                db.execute("DELETE FROM metrics WHERE update_number > ?", (update,))
        except sqlite3.Error as error:
            raise MetricsError(explain(self.folder, error)) from error
        for sink in self._sinks:
            sink.truncate_after(update)

    def close(self) -> None:
        """Write what is left and end the thread."""
        self._queue.put(None)
        self._thread.join()
        if self._unwritten:
            first, last = self._unwritten[0].update, self._unwritten[-1].update
            self._messages.append(f"the curves of updates {first} to {last} could not be written")
        self._emit_warnings()

    def _emit_warnings(self) -> None:
        """Warn in the thread that trains, so that the display is not torn."""
        messages, self._messages = self._messages, []
        for text in messages:
            warn(text)

    @phase("recording")
    def _work(self) -> None:
        more = True
        while more:
            rows, flushes, more = self._take()
            self._store(rows)
            self._write_sinks(rows)
            for event in flushes:
                event.set()
        for sink in self._sinks:
            try:
                sink.close()
            except WriteDeferredError as error:
                self._messages.append(str(error))
            except Exception:  # the numbers are in SQLite by now
                continue
        with suppress(sqlite3.Error), closing(connect(self.folder)) as db:
            # Readers then need no files beside this one.
            db.execute("PRAGMA journal_mode = DELETE")

    def _store(self, rows: list[MetricsRow]) -> None:
        """Put rows into SQLite, behind those that are still waiting."""
        rows = [*self._unwritten, *rows]
        try:
            self._write(rows)
        except (sqlite3.Error, OSError) as error:
            if not self._unwritten:
                text = f"{explain(self.folder, error)}; training continues, they are kept for now"
                self._messages.append(text)
            self._unwritten = rows[-MAX_BUFFERED:]
        else:
            self._unwritten = []

    def _write(self, rows: list[MetricsRow]) -> None:
        if rows:
            with closing(connect(self.folder)) as db, db:
                db.executemany(
                    "INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?)",
                    ((r.update, n, v, r.seconds) for r in rows for n, v in r.values.items()),
                )

    def _write_sinks(self, rows: list[MetricsRow]) -> None:
        """Hand rows to the other places; one that fails gets no more, unless it keeps them."""
        for sink in list(self._sinks) if rows else []:
            try:
                sink.write(rows)
                self._deferred.discard(sink)
            except WriteDeferredError as error:
                if sink not in self._deferred:
                    self._messages.append(f"{error}; training continues, they are kept for now")
                self._deferred.add(sink)
            except Exception as error:
                self._sinks.remove(sink)
                name = type(sink).__name__
                self._messages.append(f"{name} gets no more values, training continues: {error}")

    def _take(self) -> tuple[list[MetricsRow], list[threading.Event], bool]:
        """Wait for something to write, then a little longer, unless somebody waits for it."""
        rows: list[MetricsRow] = []
        due = math.inf
        while True:
            left = None if due == math.inf else max(due - time.monotonic(), 0.0)
            try:
                item = self._queue.get(timeout=left)
            except queue.Empty:
                return rows, [], True
            if item is None:
                return rows, [], False
            if isinstance(item, threading.Event):
                return rows, [item], True
            rows.append(item)
            due = min(due, time.monotonic() + BATCH_S)


def connect(run_folder: Path) -> sqlite3.Connection:
    """Open a run's metrics for writing; they are made if missing. Others may read meanwhile."""
    db = sqlite3.connect(run_folder / FILE, timeout=BUSY_S)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    with db:
        db.execute(SCHEMA)
    return db


def copy(run_folder: Path, other: Path) -> None:
    """Give another run the same curves, whoever writes them meanwhile."""
    with closing(connect(run_folder)) as mine, closing(connect(other)) as theirs:
        mine.backup(theirs)


def explain(run_folder: Path, error: Exception) -> str:
    """Say what failed and what to do."""
    if isinstance(error, (TypeError, ValueError, OverflowError)):
        error = ValueError(f"the database is malformed: {error}")
    text = f"metrics of {run_folder}: {error}"
    if "full" in str(error):
        return f"{text}; free some space on this disk"
    if any(word in str(error) for word in DAMAGED):
        return f"{text}; move {FILE} away, the run goes on without its past curves"
    return f"{text}; check that the folder is there, can be written and has space"


def read(
    run_folder: Path, *only: str, since: int = 0, timeout_s: float = LIMIT_S
) -> dict[str, Curve]:
    """Return every curve of a run by name, also while it trains; {} if there is none yet.

    only: names of curves, * for any ending; a long run has many more numbers than a list needs.
    since: the first update that is wanted.
    timeout_s: processor time that it may take.
    """
    which = f"AND ({' OR '.join(['name GLOB ?'] * len(only))})" if only else ""
    query = f"{ROWS} WHERE update_number >= ? {which} ORDER BY 1, 2"
    return query_curves(run_folder, query, (since, *only), timeout_s)


def curves_of(rows: Sequence[tuple[str, int, float, float | None]]) -> dict[str, Curve]:
    """Return rows as arrays by name; ValueError or TypeError where they hold no numbers."""
    curves: dict[str, Curve] = {}
    for name, group in itertools.groupby(rows, key=lambda row: row[0]):
        if not isinstance(name, str):
            raise TypeError("it has a curve whose name is no text")
        _, updates, seconds, values = zip(*group, strict=True)
        curves[name] = (
            np.array(updates, np.int64),
            np.array(seconds, np.float64),
            np.array(values, np.float64),  # None becomes NaN
        )
    return curves


def read_last(run_folder: Path, name: str, *, timeout_s: float = LIMIT_S) -> dict[str, Curve]:
    """Return a curve with nothing but its last point, {} without one: a quick look."""
    return query_curves(
        run_folder, f"{ROWS} WHERE name = ? ORDER BY 2 DESC LIMIT 1", (name,), timeout_s
    )


def last(run_folder: Path, name: str) -> tuple[int, float] | None:
    """Return the last update of a curve and its seconds, None without one."""
    for updates, seconds, _ in read_last(run_folder, name).values():
        return int(updates[0]), float(seconds[0])
    return None


def query_curves(
    run_folder: Path, query: str, values: Sequence[str | int], timeout_s: float
) -> dict[str, Curve]:
    """Ask a file that somebody may be writing; one that has just begun knows nothing."""
    path = run_folder / FILE
    if not mode_of(path):
        return {}
    try:
        with open_for_reading(path, TABLE, timeout_s=timeout_s) as db:
            return curves_of(db.execute(query, values).fetchall())
    except EmptyDatabaseError:
        return {}
    except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
        raise MetricsError(explain(run_folder, error)) from error
