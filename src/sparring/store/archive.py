"""Archive of a run's snapshots: content-addressed files, an index, and a disk limit."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from torch import Tensor

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
"""Size of the in-memory cache of weights."""
MAX_BUFFERED_ROWS = 100_000
"""Most results and ratings that are buffered while the disk is full."""
IMMEDIATELY = -1
"""`removed_at` of snapshots whose files are deleted at once."""

INSERT_RESULT = (
    "INSERT OR REPLACE INTO results SELECT ?, ?, id, ?, ?, ?, ?, ? FROM players WHERE name = ?"
)
INSERT_RATING = (
    "INSERT OR REPLACE INTO ratings SELECT id, ?, ?, ?, ?, ? FROM players WHERE name = ?"
)


class Archive(ArchiveIndex):
    """Writes snapshots, results and ratings. Threads and processes may share a folder.

    Failed reads and writes raise ArchiveError and change nothing; results and ratings that did not
    fit on the disk are written with the next ones.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int,
        policy: Mapping[str, Any] | None = None,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        """Open a run's archive; the first write creates it.

        max_bytes: limit on the disk, enforced by `prune`.
        policy: metadata from `policy_meta`, which makes every snapshot loadable as a policy.
        memory_bytes: size of the in-memory cache of weights.
        """
        super().__init__(folder)
        self.max_bytes, self.policy = max_bytes, dict(policy or {})
        self._cache: FileCache[dict[str, Tensor]] = FileCache(memory_bytes)
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._buffered: list[tuple[str, tuple[Any, ...]]] = []

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write buffered rows, and merge SQLite's journal into the database file."""
        with self._lock:
            with suppress(ArchiveError):
                self._write_buffered()
            if self._db:
                with suppress(sqlite3.Error), closing(self._db) as db:
                    db.execute("PRAGMA journal_mode = DELETE")
            self._db = None

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
        """Store a copy of a network; weights that are already stored keep their entry."""
        data = pack_snapshot(weights, self.policy)
        content = sha256_hex(data)
        file, created = self.file(content), False
        try:
            with self._transaction() as db:
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
                    created = True
        except ArchiveError:
            if created:
                file.unlink(missing_ok=True)
            raise
        entry = self.by_hash(content)
        assert entry is not None
        return entry

    def weights(self, content: str) -> dict[str, Tensor]:
        """Return the verified weights of a hash, on the CPU; do not modify them.

        Raises ArchiveError if the file is missing or damaged.
        """
        file = self.file(content)
        return self._cache.get(content, [file], lambda: read_snapshot(file)[0], tensor_bytes)

    @property
    def memory(self) -> CacheStatistics:
        """Statistics of the cache of weights."""
        return self._cache.statistics

    def prune(
        self,
        needed: Collection[str],
        best: str | None,
        ratings: Mapping[str, float],
        *,
        update: int = IMMEDIATELY,
        oldest: int | None = None,
    ) -> list[SnapshotEntry]:
        """Remove entries beyond the disk limit, and return them.

        Keeps the newest, the best and the needed ones, and of the others those that differ most in
        rating and age. Call it before the checkpoint of the same update is saved.
        update, oldest: the current update, and that of the oldest checkpoint. Files stay while an
            older checkpoint can be resumed, and `forget_after` then restores their entries. Without
            them files are deleted at once.
        """
        kept = {*needed, *([best] if best else [])}
        removed = choose_removed(self.entries(), self.max_bytes, kept, ratings)
        remove = "UPDATE snapshots SET removed_at = ? WHERE hash = ?"
        with self._transaction() as db:
            db.executemany(remove, [(update, entry.hash) for entry in removed])
            deletable = (
                "SELECT hash FROM snapshots WHERE removed_at IS NOT NULL AND removed_at <= ?"
            )
            last = update if oldest is None else oldest
            for (content,) in db.execute(deletable, (last,)).fetchall():
                if content not in needed:
                    self.file(content).unlink(missing_ok=True)
        return removed

    def forget_after(
        self,
        update: int,
        *,
        last: int | None = None,
        needed: Collection[str] = (),
        member: str | None = None,
    ) -> None:
        """Forget everything after an update, before a run resumes from there.

        Deletes later entries, results and ratings, restores entries that were removed later if
        their files exist, and deletes files that no entry names and no checkpoint needs.
        last: highest snapshot number to keep. The best checkpoint may be known only after `update`.
        member: only rows of this run, if several runs share the archive.
        """
        if not self.path.exists():
            return
        self._buffered.clear()
        late, values = "update_number > ? AND (? IS NULL OR member = ?)", (update, member, member)
        with self._transaction() as db:
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
        """Record wins, draws and losses of the learner since the last call, by opponent.

        A second call with the same update and kind replaces the first.
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
        """Record ratings of players with both ends of their intervals."""
        self._put(
            (INSERT_RATING, (update, decisions, *map(float, values), player))
            for player, values in ratings.items()
        )

    def _put(self, rows: Iterator[tuple[str, tuple[Any, ...]]]) -> None:
        with self._lock:
            self._buffered = [*self._buffered, *rows][-MAX_BUFFERED_ROWS:]
            self._write_buffered()

    def _write_buffered(self) -> None:
        if not self._buffered:
            return
        with self._transaction() as db:
            names = {(values[-1],) for _, values in self._buffered}
            db.executemany("INSERT OR IGNORE INTO players (name) VALUES (?)", sorted(names))
            for statement, values in self._buffered:
                db.execute(statement, values)
        self._buffered = []

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction; a failure rolls it back."""
        with self._lock:
            try:
                if self._db is None:
                    self._db = connect(self.folder)
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except BaseException as error:
                if self._db:
                    # Closing rolls back too, and the next transaction opens a moved file anew.
                    with suppress(sqlite3.Error):
                        self._db.close()
                    self._db = None
                if isinstance(error, sqlite3.Error | OSError):
                    raise ArchiveError(describe_error(self.folder, error)) from error
                raise


def connect(folder: Path) -> sqlite3.Connection:
    """Open an index for writing and create it if missing. Other processes may read meanwhile."""
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
    return sum(tensor.nbytes for tensor in weights.values())


def snapshots_in_slots(checkpoints: Path) -> set[str]:
    """Return the hashes of snapshots in the opponent slots of saved checkpoints."""
    hashes: set[str] = set()
    for number in checkpoint_numbers(checkpoints):
        with suppress(SparringError, AttributeError, TypeError, KeyError):
            meta = read_manifest(checkpoints / f"{number:08d}")["meta"]
            slots = meta.get("league", {}).get("slots", {})
            hashes |= {slot["hash"] for slot in slots.values() if slot.get("hash")}
    return hashes


def copy_archive(folder: Path, other: Path) -> None:
    """Copy snapshots and results into another run, also while the first one trains."""
    if not (folder / LEAGUE_FILE).exists():
        return
    try:
        with closing(connect(folder)) as source, closing(connect(other)) as target:
            source.backup(target)
        (other / LEAGUE).mkdir(exist_ok=True)
        for file in (folder / LEAGUE).glob(f"*{SNAPSHOT}"):
            link_or_copy(file, other / LEAGUE / file.name)
    except (sqlite3.Error, OSError) as error:
        raise ArchiveError(describe_error(other, error)) from error
