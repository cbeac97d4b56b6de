"""What somebody can put into a run's folder, beside runs that are healthy."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sparring.store.archive_index import SCHEMA as LEAGUE
from sparring.training.records.run import LOCK

Poison = Callable[[Path], None]
DEEP = 5000
ESCAPES = "\x1b[2J\x1b]0;owned\x07\u202egnp\u2066\n\rnext"
MARKUP = "<img src=x onerror=alert(1)>"
TERABYTE = 2**40


def text(name: str, content: str) -> Poison:
    """Another content of a file."""
    return lambda run: (run / name).write_bytes(content.encode("utf-8", "surrogatepass")) and None


def pipe(name: str) -> Poison:
    """A FIFO, which nobody ever writes into."""

    def poison(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)

    return poison


def table(*statements: str, name: str = "metrics.sqlite") -> Poison:
    """Another database."""

    def poison(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        with closing(sqlite3.connect(run / name)) as db, db:
            for statement in statements:
                db.execute(statement)

    return poison


def sparse(name: str) -> Poison:
    """A file that says it has a terabyte."""

    def poison(run: Path) -> None:
        with (run / name).open("wb") as file:
            file.truncate(TERABYTE)

    return poison


def odd_rows(run: Path) -> None:
    """Names that are bytes, times and updates at the end of all numbers."""
    with closing(sqlite3.connect(run / "metrics.sqlite")) as db, db:
        rows = [
            (2**63 - 1, "eval/strength", 9e999, -9e999),
            (-(2**63), "eval/strength", None, 1e300),
            (3, b"\xff\x00eval/strength", 1.0, 1.0),
            (4, "eval/" + "\x1b[31m" * 9 + "/win", 1.0, 1.0),
        ]
        db.executemany("INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?)", rows)


def torn_page(run: Path) -> None:
    """A database with noise in the middle."""
    raw = bytearray((run / "metrics.sqlite").read_bytes())
    raw[4096:8192] = bytes(range(256)) * 16
    (run / "metrics.sqlite").write_bytes(raw)


def wal_pipe(run: Path) -> None:
    """A database in WAL mode whose log is a FIFO."""
    with closing(sqlite3.connect(run / "metrics.sqlite")) as db:
        db.execute("PRAGMA journal_mode = WAL")
    pipe("metrics.sqlite-wal")(run)


def unix_socket(run: Path) -> None:
    """A socket for the events."""
    (run / "events.json").unlink()
    here = os.open(run, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/events.json")  # the whole path may be too long
    finally:
        os.close(here)


def link_loop(run: Path) -> None:
    """Links that lead to each other."""
    (run / "results.json").symlink_to("best.json")
    (run / "best.json").unlink()
    (run / "best.json").symlink_to("results.json")


def folder_for_file(run: Path) -> None:
    """A folder where settings are expected."""
    (run / "config.toml").unlink()
    (run / "config.toml" / "x").mkdir(parents=True)


def closed(run: Path) -> None:
    """Files that nobody may read."""
    for name in ("config.toml", "metrics.sqlite", "checkpoints"):
        (run / name).chmod(0)


def numbers(run: Path) -> None:
    """Checkpoints with numbers that are none."""
    for name in ("9" * 31, "007", "1e3", "latest", "٣٤", "0" * 200):
        (run / "checkpoints" / name).mkdir()
        manifest = {"number": 10**30, "meta": {"update": 10**30}}
        (run / "checkpoints" / name / "manifest.json").write_text(json.dumps(manifest))
    (run / "best.json").write_text('{"checkpoint": 1e400, "strength": [[]]}')


def thousands(run: Path) -> None:
    """Thousands of checkpoints, with manifests that are anything."""
    odd = ("[]", '{"meta": []}', '{"meta": {"game": [], "update": {}}}', "{", '{"meta": null}')
    for number in range(3000):
        folder = run / "checkpoints" / f"{number + 100:08d}"
        folder.mkdir()
        (folder / "manifest.json").write_text(odd[number % len(odd)])


def odd_league(run: Path) -> None:
    """A league of players that are anything, one of them elsewhere on the disk."""
    with closing(sqlite3.connect(run / "league.sqlite")) as db, db:
        db.executescript(LEAGUE)
        away = "../../../../etc/passwd"
        db.execute(
            "INSERT INTO snapshots VALUES (1, ?, x'ff', 'm', 'x', 1e400, 'y', -1, null)", (away,)
        )
        db.execute("INSERT INTO players VALUES (1, ?)", (away,))
        db.execute("INSERT INTO players VALUES (2, x'00ff')")
        db.execute("INSERT INTO ratings VALUES (1, 'a', 2, 'high', 'low', x'00')")
        db.execute("INSERT INTO ratings VALUES (2, 1, 2, 9e999, -9e999, 0)")
        db.execute("INSERT INTO results VALUES ('training', 'm', 1, 1, 1, -5, 'x', 3)")


def nested(run: Path) -> None:
    """Folders in folders, deeper than Python's stack."""
    here = os.open(run, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def odd_replays(run: Path) -> None:
    """Replays beside the runs that are anything."""
    place = run.parent / "replays"
    place.mkdir(exist_ok=True)
    (place / "deep.json").write_text("[" * 100_000)
    (place / "folder.json").mkdir(exist_ok=True)
    (place / "number.json").write_text('{"format": "sparring-replay", "version": 1, "game": {}}')
    for name in ("pipe.json", "loop.json"):
        (place / name).unlink(missing_ok=True)
    os.mkfifo(place / "pipe.json")
    (place / "loop.json").symlink_to("loop.json")


def far_future(run: Path) -> None:
    """Settings of a year that no calendar has."""
    os.utime(run / "config.toml", (2**41, 2**41))


def odd_profile(run: Path) -> None:
    """A profile and the facts of a network that are something else."""
    (run / "profile.json").mkdir()
    (run / "x").mkdir()
    os.mkfifo(run / "x" / "profile.json")
    (run / "network.json").write_text('{"parameters": "many", "macs": [[1]]}')
    (run / "machine.json").write_text('"\\ud800"')
    (run / "origin.json").write_text("[" * DEEP)


def other_places(run: Path) -> None:
    """Settings that name another run and the whole disk."""
    lines = ['game = "tic_tac_toe"', 'name = "fine"', 'runs = "/"', 'init = "../fine"']
    (run / "config.toml").write_text("\n".join([*lines, 'config = "/etc/passwd"', "updates = 40"]))


def linked_checkpoint(run: Path) -> None:
    """A checkpoint that lies elsewhere."""
    (run / "checkpoints" / "00000030").symlink_to("/etc")


@contextmanager
def growing(run: Path) -> Iterator[None]:
    """Events that grow as long as somebody looks."""
    ended = threading.Event()

    def write() -> None:
        with (run / "events.json").open("a") as file:
            while not ended.is_set() and file.tell() < 2**26:
                file.write('{"event": "x"},' * 100)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


@contextmanager
def locked_table(run: Path) -> Iterator[None]:
    """Curves that somebody else keeps for himself."""
    with closing(sqlite3.connect(run / "metrics.sqlite", isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def held_lock(run: Path) -> Iterator[None]:
    """A lock that is held, by somebody whose number is none."""
    with (run / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"-{'9' * 4000} \x1b[31mhost\n")
        lock.flush()
        yield


KNOWN: dict[str, Poison] = {
    "settings 5,000 lists deep": text("config.toml", "a=" + "[" * DEEP),
    "updates that are text": text("config.toml", 'game = "tic_tac_toe"\nupdates = "x"'),
    "minutes that are a list": text("config.toml", 'game = "tic_tac_toe"\nminutes = [1]'),
    "events 5,000 lists deep": text("events.json", "[" * DEEP + "]" * DEEP),
    "an end without a why": text("events.json", '[{"event": "ended"}]'),
    "results 5,000 lists deep": text("results.json", "[" * DEEP + "]" * DEEP),
    "results that are numbers": text("results.json", '{"results": [1]}'),
    "text for a value": table(
        "CREATE TABLE metrics (update_number, name, value, seconds)",
        "INSERT INTO metrics VALUES (1, 'eval/strength', 'x', 1), (1, 'a', 'b', 'c')",
    ),
    "settings of 20 MB": text("config.toml", 'game = "' + "x" * 20_000_000 + '"'),
    "events that are a FIFO": pipe("events.json"),
    "curves without end": table(
        "CREATE VIEW metrics AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS update_number, 'eval/strength' AS name, 1.0 AS value, 1.0 AS seconds FROM n"
    ),
}
"""Those that took the list of all runs away, or stopped the server."""

INVENTED: dict[str, Poison] = {
    "curves in a virtual table": table(
        "CREATE VIRTUAL TABLE metrics USING fts4(update_number, name, value, seconds)",
        "INSERT INTO metrics VALUES (1, 'eval/strength', 1, 1)",
    ),
    "curves that are computed as they are read": table(
        "CREATE TABLE metrics (update_number, name, seconds, "
        "value GENERATED ALWAYS AS (length(hex(zeroblob(4000000)))))",
        "INSERT INTO metrics (update_number, name, seconds) VALUES (1, 'eval/strength', 1)",
    ),
    "ten thousand curves": table(
        "CREATE TABLE metrics (update_number, name PRIMARY KEY, value, seconds)",
        "INSERT INTO metrics WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT "
        "10000) SELECT i, 'eval/' || i || '/win', 0.5, 1 FROM n",
    ),
    "a torn page": torn_page,
    "rows at the end of all numbers": odd_rows,
    "a log of curves that is a FIFO": wal_pipe,
    "curves of a terabyte": sparse("metrics.sqlite"),
    "events of a terabyte": sparse("events.json"),
    "events that are a socket": unix_socket,
    "links in a circle": link_loop,
    "a folder for the settings": folder_for_file,
    "files that nobody may read": closed,
    "settings with 100,000 keys": text("config.toml", "\n".join(f"k{i}=1" for i in range(10**5))),
    "a key of 100,000 parts": text("config.toml", "a" + ".a" * 100_000 + "=1"),
    "integers of 4,000 digits and dates": text(
        "config.toml",
        'game = "tic_tac_toe"\nupdates = ' + "9" * 4000 + "\nd = 1979-05-27T07:32:00Z\nt = 07:32:00"
        "\nminutes = nan\ndecisions = -inf",
    ),
    "a game that steers the terminal": text(
        "config.toml", f"game = {json.dumps(ESCAPES)}\nalgo = {json.dumps(MARKUP)}"
    ),
    "events with odd numbers": text(
        "events.json",
        '[{"event": "best", "checkpoint": [1], "strength": NaN, "update": -1e400}, '
        '{"event": "phase", "phase": {}, "seconds": 1e999}, {"event": ["ended"], "why": 1'
        + "0" * 30
        + '}, null, "\\ud800"]',
    ),
    "results with odd numbers": text(
        "results.json",
        '{"ended": [], "results": {"random": {"win": 1e999, "low": "x", "high": []}, '
        '"alone": {"score": "NaN", "score_low": "low", "score_high": {}}}}',
    ),
    "checkpoints with odd numbers": numbers,
    "thousands of odd checkpoints": thousands,
    "a checkpoint that lies elsewhere": linked_checkpoint,
    "a league of anything": odd_league,
    "a league without end": table(
        "CREATE VIEW snapshots AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS number, i AS hash, 'main' AS role, 'm' AS member, 1 AS update_number, "
        "1 AS decisions, 1.0 AS seconds, 1 AS bytes, NULL AS removed_at FROM n",
        name="league.sqlite",
    ),
    "a lock that is a FIFO": pipe(LOCK),
    "1,500 folders in one another": nested,
    "replays of anything": odd_replays,
    "settings of the far future": far_future,
    "a profile of anything": odd_profile,
    "labels that are a FIFO": pipe("labels.json"),
    "labels of a terabyte": sparse("labels.json"),
    "labels 5,000 lists deep": text("labels.json", "[" * DEEP + "]" * DEEP),
    "a note that steers a terminal": text(
        "labels.json", json.dumps({"note": ESCAPES, "tags": [ESCAPES, MARKUP]})
    ),
    "tags that are a table": text("labels.json", '{"note": "\\ud800", "tags": {"a": 1}}'),
    "settings that name other places": other_places,
}
MEANWHILE = {
    "events that grow": growing,
    "curves that somebody keeps": locked_table,
    "a lock of nobody": held_lock,
}
"""Those that last as long as somebody asks."""
NAMES = (
    "line\nbreak",
    "\x1b[2J\x1b[31mred",
    "\u202eesrever",
    "half\udcff",
    MARKUP,
    "latest",
    "a" * 255,
    "%2e%2e",
)
"""Names of healthy runs that are odd themselves."""
