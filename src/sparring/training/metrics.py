"""Numbers over time: SQLite for us, TensorBoard and Weights & Biases beside it."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
import queue
import sqlite3
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, SparringError

FILE = "metrics.sqlite"
BATCH_S = 1.0
"""How long values wait for company before they are written. So much a dying process loses."""
BUSY_S = 30.0
"""How long the writer waits for another program that holds the file."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS metrics (
  update_number INTEGER NOT NULL,
  name TEXT NOT NULL,
  value REAL,
  seconds REAL NOT NULL,
  PRIMARY KEY (name, update_number)
) WITHOUT ROWID
"""

RENAMED = {
    "losses/policy": "losses/policy_loss",
    "losses/value": "losses/value_loss",
    "losses/clip_fraction": "losses/clipfrac",
    "losses/gradient_norm": "losses/grad_norm",
    "learning/gradient_steps": "learning/optimiser_steps",
}
"""What curves of older runs are called now."""

Curve = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Update numbers, seconds of training, values (NaN where the value was not finite)."""


class MetricsError(SparringError):
    """Metrics that could not be written or read."""


@dataclass(frozen=True)
class _Row:
    update: int
    values: dict[str, float | None]
    seconds: float
    wall_time: float


class MetricsWriter:
    """Takes numbers without waiting; a thread writes them in batches."""

    def __init__(self, run_folder: Path, *, tensorboard: bool = True, wandb: bool = False) -> None:
        self.folder = run_folder
        self.nonfinite: Counter[str] = Counter()
        """How many values of each name were NaN or infinite; they are stored as NULL."""
        if tensorboard and importlib.util.find_spec("tensorboard") is None:
            raise ConfigError(
                "tensorboard is not installed: pip install tensorboard, or turn it off"
            )
        self._tensorboard = tensorboard
        self._events: Any = None
        self._purge: int | None = None
        self._wandb = start_wandb(run_folder) if wandb else None
        self._queue: queue.SimpleQueue[_Row | threading.Event | None] = queue.SimpleQueue()
        self._error: Exception | None = None
        try:
            connect(run_folder).close()
        except (sqlite3.Error, OSError) as wrong:
            raise MetricsError(explain(run_folder, wrong)) from wrong
        self._thread = threading.Thread(target=self._work, name="metrics", daemon=True)
        self._thread.start()

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except MetricsError as wrong:
            if error is None:
                raise
            error.add_note(str(wrong))  # the first error says more

    def add(self, update: int, values: Mapping[str, float], *, seconds: float) -> None:
        """Note values of an update, `seconds` of training into the run. Never waits for a disk."""
        self._raise()
        numbers = {name: float(value) for name, value in values.items()}
        wrong = [name for name, value in numbers.items() if not math.isfinite(value)]
        self.nonfinite.update(wrong)
        kept: dict[str, float | None] = {**numbers, **dict.fromkeys(wrong)}
        self._queue.put(_Row(int(update), kept, float(seconds), time.time()))

    def flush(self) -> None:
        """Wait until everything added so far can be read."""
        written = threading.Event()
        self._queue.put(written)
        while not written.wait(0.1) and self._thread.is_alive():
            pass
        self._raise()

    def truncate_after(self, update: int) -> None:
        """Forget what came after an update, before a run goes on from there.

        W&B cannot take values back; there, the resumed run's values are added to the old ones.
        """
        self.flush()
        try:
            with closing(connect(self.folder)) as db, db:
                db.execute("DELETE FROM metrics WHERE update_number > ?", (update,))
                rename = "UPDATE OR REPLACE metrics SET name = ? WHERE name = ?"
                db.executemany(rename, ((new, old) for old, new in RENAMED.items()))
        except sqlite3.Error as wrong:
            raise MetricsError(explain(self.folder, wrong)) from wrong
        self._purge = update + 1

    def close(self) -> None:
        """Write what is left and end the thread; an error of it is raised."""
        self._queue.put(None)
        self._thread.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise MetricsError(explain(self.folder, self._error)) from self._error

    def _work(self) -> None:
        """Write batches until told to stop."""
        waiting: list[threading.Event] = []
        try:
            with closing(connect(self.folder)) as db:
                more = True
                while more:
                    rows, waiting, more = self._take()
                    self._write(db, rows)
                    for event in waiting:
                        event.set()
        except Exception as wrong:
            self._error = wrong  # the next call of the training thread raises it
        finally:
            for event in waiting:
                event.set()
            with suppress(Exception):  # the numbers are in SQLite by now
                if self._events is not None:
                    self._events.close()
                if self._wandb is not None:
                    self._wandb.finish()

    def _take(self) -> tuple[list[_Row], list[threading.Event], bool]:
        """Wait for something to write, then a little longer, unless somebody waits for it."""
        rows: list[_Row] = []
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

    def _write(self, db: sqlite3.Connection, rows: list[_Row]) -> None:
        with db:
            db.executemany(
                "INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?)",
                ((r.update, n, v, r.seconds) for r in rows for n, v in r.values.items()),
            )
        if self._tensorboard and rows:
            if self._events is None:
                from torch.utils.tensorboard import SummaryWriter

                folder = str(self.folder / "tensorboard")
                self._events = SummaryWriter(folder, purge_step=self._purge)
            for row in rows:
                for name, value in row.values.items():
                    if value is not None:
                        self._events.add_scalar(name, value, row.update, row.wall_time)
            self._events.flush()
        if self._wandb is not None:
            for row in rows:
                known = {name: value for name, value in row.values.items() if value is not None}
                self._wandb.log({"update": row.update, "seconds": row.seconds, **known})


def connect(run_folder: Path) -> sqlite3.Connection:
    """Open a run's metrics for writing; they are made if missing. Others may read meanwhile."""
    db = sqlite3.connect(run_folder / FILE, timeout=BUSY_S)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    with db:
        db.execute(SCHEMA)
    return db


def explain(run_folder: Path, wrong: Exception) -> str:
    """Say what failed and what to do."""
    text = f"metrics of {run_folder}: {wrong}"
    if "full" in str(wrong):
        return f"{text}; free some space on this disk"
    if "malformed" in str(wrong) or "not a database" in str(wrong):
        return f"{text}; move {FILE} away, the run goes on without its past curves"
    return f"{text}; check that the folder is there, can be written and has space"


def start_wandb(run_folder: Path) -> Any:
    """Begin or go on with this run on Weights & Biases; steps are the updates."""
    try:
        wandb: Any = importlib.import_module("wandb")
    except ImportError as missing:
        raise ConfigError(
            f"wandb is not there ({missing}): pip install 'sparring[track]'"
        ) from None
    config = run_folder / "config.toml"
    known = tomllib.loads(config.read_text()) if config.exists() else None
    name = run_folder.absolute().name
    run = wandb.init(
        project="sparring", name=name, id=name, resume="allow", dir=str(run_folder), config=known
    )
    run.define_metric("*", step_metric="update")
    return run


def read(run_folder: Path, *only: str) -> dict[str, Curve]:
    """Return every curve of a run by name, also while it trains; {} if there is none yet.

    only: names of curves, * for any ending; a long run has many more numbers than a list needs.
    """
    path = run_folder / FILE
    if not path.exists():
        return {}
    try:
        rows = fetch(path, only)
    except sqlite3.Error as wrong:
        raise MetricsError(explain(run_folder, wrong)) from wrong
    curves: dict[str, Curve] = {}
    for name, group in itertools.groupby(rows, key=lambda row: row[0]):
        _, updates, seconds, values = zip(*group, strict=True)
        curves[name] = (
            np.array(updates, np.int64),
            np.array(seconds, np.float64),
            np.array(values, np.float64),  # None becomes NaN
        )
    for old, new in RENAMED.items():
        if old in curves and new not in curves:
            curves[new] = curves.pop(old)
    return curves


def fetch(path: Path, only: Sequence[str] = ()) -> list[tuple[str, int, float, float | None]]:
    """Read all rows, or those of some names, ordered by name and update."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    which = f"WHERE {' OR '.join(['name GLOB ?'] * len(only))}" if only else ""
    query = f"SELECT name, update_number, seconds, value FROM metrics {which} ORDER BY 1, 2"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S)) as db:
            return db.execute(query, only).fetchall()
    except sqlite3.OperationalError:
        # On read-only media a file in WAL mode cannot be locked, and need not be.
        wal = path.with_name(f"{FILE}-wal")
        if wal.exists() and wal.stat().st_size:
            raise
        with closing(sqlite3.connect(f"{uri}&immutable=1", uri=True)) as db:
            return db.execute(query, only).fetchall()
