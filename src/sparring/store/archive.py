"""The past selves of a run: files by content, an index beside them, and a bound on the disk."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from torch import Tensor

from sparring.errors import SparringError
from sparring.store.archive_index import (
    BUSY_S,
    FORMAT,
    LEAGUE_FILE,
    LEARNER_NAME,
    MATCH,
    SCHEMA,
    TRAINING,
    ArchiveIndex,
    RatingRow,
    Result,
    SnapshotEntry,
    Tally,
    check_format,
    describe_error,
)
from sparring.store.diversity import choose_removed
from sparring.store.errors import ArchiveError
from sparring.store.file_cache import CacheStatistics, FileCache
from sparring.store.files import link_or_copy, remove_stale_files, write_atomic
from sparring.store.folders import LEAGUE, SNAPSHOT
from sparring.store.manifest import checkpoint_numbers, read_manifest
from sparring.store.snapshots import pack_snapshot, read_snapshot, sha256_hex

__all__ = [
    "LEARNER_NAME",
    "MATCH",
    "TRAINING",
    "Archive",
    "ArchiveError",
    "ArchiveIndex",
    "RatingRow",
    "Result",
    "SnapshotEntry",
    "Tally",
    "copy_archive",
    "snapshots_in_slots",
]

MEMORY_BYTES = 512 * 2**20
"""Weights that stay in memory once they were loaded."""
MAX_BUFFERED_ROWS = 100_000
"""How many results and ratings wait at most for a disk that has space again."""
IMMEDIATELY = -1
"""Removed without an update to go back before."""

INSERT_RESULT = (
    "INSERT OR REPLACE INTO results SELECT ?, ?, id, ?, ?, ?, ?, ? FROM players WHERE name = ?"
)
INSERT_RATING = (
    "INSERT OR REPLACE INTO ratings SELECT id, ?, ?, ?, ?, ? FROM players WHERE name = ?"
)


class Archive(ArchiveIndex):
    """Keeps snapshots and what is known about them. Threads and processes may share a folder.

    Whatever cannot be written or read is an ArchiveError, and what was there before is untouched;
    results and ratings that found no space are written with the next ones.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int,
        policy: Mapping[str, Any] | None = None,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        """Open a run's archive; it is made with the first thing that is kept.

        max_bytes: what `prune` leaves on the disk.
        policy: see `policy_meta`; with it every snapshot can be loaded as a policy on its own.
        memory_bytes: bound of the weights that are kept in memory.
        """
        super().__init__(folder)
        self.max_bytes, self.policy = max_bytes, dict(policy or {})
        self._shelf: FileCache[dict[str, Tensor]] = FileCache(memory_bytes)
        self._lock = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._late: list[tuple[str, tuple[Any, ...]]] = []

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is late, if there is space now, and leave one file without others beside."""
        with self._lock:
            with suppress(ArchiveError):
                self._write_late()
            if self._open:
                with suppress(sqlite3.Error), closing(self._open) as db:
                    db.execute("PRAGMA journal_mode = DELETE")
            self._open = None

    # Snapshots

    def add(
        self,
        weights: Mapping[str, Tensor],
        *,
        role: str,
        member: str,
        update: int,
        decisions: int,
        seconds: float,
    ) -> SnapshotEntry:
        """Keep a copy of a network; of weights that are there already it is the entry of then."""
        data = pack_snapshot(weights, self.policy)
        content = sha256_hex(data)
        file, made = self.file(content), False
        try:
            with self._changing() as db:
                # The row first: it holds the lock that keeps a sweep away from the file.
                db.execute(
                    "INSERT INTO snapshots SELECT COALESCE(MAX(number), -1) + 1, ?, ?, ?, ?, ?, ?, "
                    "?, NULL FROM snapshots WHERE true "
                    "ON CONFLICT (hash) DO UPDATE SET removed_at = NULL",
                    (content, role, member, update, decisions, seconds, len(data)),
                )
                if not file.exists():
                    file.parent.mkdir(exist_ok=True)
                    write_atomic(file, data)
                    made = True
        except ArchiveError:
            if made:
                file.unlink(missing_ok=True)
            raise
        entry = self.called(content)
        assert entry is not None
        return entry

    def weights(self, content: str) -> dict[str, Tensor]:
        """Return the network of a hash, on the CPU, to be read only; every byte was verified.

        One that is missing or damaged is an ArchiveError.
        """
        file = self.file(content)
        return self._shelf.get(content, [file], lambda: read_snapshot(file)[0], tensor_bytes)

    @property
    def memory(self) -> CacheStatistics:
        """How often weights were in memory when they were asked for."""
        return self._shelf.statistics

    def prune(
        self,
        needed: Collection[str],
        best: str | None,
        ratings: Mapping[str, float],
        *,
        update: int = IMMEDIATELY,
        oldest: int | None = None,
    ) -> list[SnapshotEntry]:
        """Remove entries beyond the bound on the disk, and return them.

        The newest, the best and the needed stay, and of the others those that differ most in rating
        and age. Call it before the checkpoint of the same update is made.
        update, oldest: this update, and that of the oldest checkpoint that a run may be resumed
            from to the bit: until that is not older, files stay, and `forget_after` brings the
            entries back. Left out, the files go at once.
        """
        kept = {*needed, *([best] if best else [])}
        doomed = choose_removed(self.entries(), self.max_bytes, kept, ratings)
        remove = "UPDATE snapshots SET removed_at = ? WHERE hash = ?"
        with self._changing() as db:
            db.executemany(remove, [(update, entry.hash) for entry in doomed])
            gone = "SELECT hash FROM snapshots WHERE removed_at IS NOT NULL AND removed_at <= ?"
            last = update if oldest is None else oldest
            for (content,) in db.execute(gone, (last,)).fetchall():
                if content not in needed:
                    self.file(content).unlink(missing_ok=True)
        return doomed

    def forget_after(
        self,
        update: int,
        *,
        last: int | None = None,
        needed: Collection[str] = (),
        member: str | None = None,
    ) -> None:
        """Forget what came after an update, before a run goes on from there.

        Later entries, results and ratings leave the index, entries that were removed later are back
        if their files are there, and files go that nobody names and no checkpoint needs.
        last: the highest number that there was. A best checkpoint is kept when it is known to be
            the best, which may be after the update that is gone back to.
        member: only what this run of several that share the archive has left.
        """
        if not self.path.exists():
            return
        self._late.clear()
        late, values = "update_number > ? AND (? IS NULL OR member = ?)", (update, member, member)
        with self._changing() as db:
            db.execute(f"DELETE FROM snapshots WHERE {late}", values)
            if last is not None:
                db.execute("DELETE FROM snapshots WHERE number > ?", (last,))
            db.execute(f"DELETE FROM results WHERE {late}", values)
            db.execute("DELETE FROM ratings WHERE update_number > ?", (update,))
            removed = "SELECT hash FROM snapshots WHERE removed_at > ?"
            for (content,) in db.execute(removed, (update,)).fetchall():
                if self.file(content).exists():
                    db.execute("UPDATE snapshots SET removed_at = NULL WHERE hash = ?", (content,))
            known = {content for (content,) in db.execute("SELECT hash FROM snapshots")}
            for file in (self.folder / LEAGUE).glob(f"*{SNAPSHOT}"):
                if file.stem not in known and file.stem not in needed:
                    file.unlink(missing_ok=True)
            remove_stale_files(self.folder / LEAGUE)

    # Results

    def record(
        self,
        update: int,
        decisions: int,
        results: Mapping[str, tuple[int, int, int]],
        kind: str = TRAINING,
        *,
        member: str = "",
    ) -> None:
        """Note wins, draws and losses of the learner since the last time, by opponent.

        Once per update and kind: what is recorded again replaces what was. A long run does well to
        add up the results of several updates before.
        """
        self._put(
            (INSERT_RESULT, (kind, member, update, decisions, *map(int, counts), opponent))
            for opponent, counts in results.items()
        )

    def rate(
        self,
        update: int,
        decisions: int,
        ratings: Mapping[str, tuple[float, float, float]],
    ) -> None:
        """Note what players are worth at this time: rating and both ends of its interval."""
        self._put(
            (INSERT_RATING, (update, decisions, *map(float, values), player))
            for player, values in ratings.items()
        )

    def _put(self, rows: Iterator[tuple[str, tuple[Any, ...]]]) -> None:
        with self._lock:
            self._late = [*self._late, *rows][-MAX_BUFFERED_ROWS:]
            self._write_late()

    def _write_late(self) -> None:
        if not self._late:
            return
        with self._changing() as db:
            names = {(values[-1],) for _, values in self._late}
            db.executemany("INSERT OR IGNORE INTO players (name) VALUES (?)", sorted(names))
            for statement, values in self._late:
                db.execute(statement, values)
        self._late = []

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """Change the index in one go; whatever fails leaves it as it was."""
        with self._lock:
            try:
                if self._open is None:
                    self._open = connect(self.folder)
                self._open.execute("BEGIN IMMEDIATE")
                yield self._open
                self._open.execute("COMMIT")
            except BaseException as error:
                if self._open:
                    # Closing rolls back too, and a file that was moved is found the next time.
                    with suppress(sqlite3.Error):
                        self._open.close()
                    self._open = None
                if isinstance(error, sqlite3.Error | OSError):
                    raise ArchiveError(describe_error(self.folder, error)) from error
                raise


def connect(folder: Path) -> sqlite3.Connection:
    """Open an index for writing; it is made if missing. Others may read meanwhile."""
    db = sqlite3.connect(
        folder / LEAGUE_FILE, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        check_format(folder / LEAGUE_FILE, db)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")
        if db.execute("SELECT 1 FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchone():
            raise sqlite3.DatabaseError("malformed, it holds views or triggers")
    except BaseException:
        db.close()
        raise
    return db


def tensor_bytes(weights: Mapping[str, Tensor]) -> int:
    """Return how much memory tensors take."""
    return sum(tensor.nbytes for tensor in weights.values())


def snapshots_in_slots(checkpoints: Path) -> set[str]:
    """Return the hashes of the snapshots that the kept checkpoints have in their slots."""
    found: set[str] = set()
    for number in checkpoint_numbers(checkpoints):
        with suppress(SparringError, AttributeError, TypeError, KeyError):
            meta = read_manifest(checkpoints / f"{number:08d}")["meta"]
            slots = meta.get("league", {}).get("slots", {})
            found |= {slot["hash"] for slot in slots.values() if slot.get("hash")}
    return found


def copy_archive(folder: Path, other: Path) -> None:
    """Give another run the same snapshots and results, whoever writes them meanwhile."""
    if not (folder / LEAGUE_FILE).exists():
        return
    try:
        with closing(connect(folder)) as mine, closing(connect(other)) as theirs:
            mine.backup(theirs)
        (other / LEAGUE).mkdir(exist_ok=True)
        for file in (folder / LEAGUE).glob(f"*{SNAPSHOT}"):
            link_or_copy(file, other / LEAGUE / file.name)
    except (sqlite3.Error, OSError) as error:
        raise ArchiveError(describe_error(other, error)) from error
