"""The league of somebody else's run: its index names no other files, and its files are its own."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import torch

from sparring.store import checkpoint
from sparring.store.archive import Archive, ArchiveError
from sparring.store.checkpoint import CheckpointError
from sparring.store.policies import load_policy
from sparring.store.standings import standings_of
from store.poison_helpers import make_run


def opened(run: Path) -> Archive:
    return Archive(run, max_bytes=10**9)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with two snapshots, a result and a rating."""
    run = tmp_path / "run"
    run.mkdir()
    with opened(run) as archive:
        for update in (1, 2):
            weights = {"w": torch.full((3,), float(update))}
            kept = {"role": "main", "member": "a", "update": update}
            entry = archive.add(weights, **kept, decisions=10, seconds=1.0)  # type: ignore[arg-type]
        archive.record(2, 10, {entry.hash: (1, 0, 2)})
        archive.rate(2, 10, {entry.hash: (1.0, 0.5, 1.5)})
    return run


def changed(run: Path, statement: str) -> None:
    with closing(sqlite3.connect(run / "league.sqlite")) as db, db:
        db.execute("PRAGMA ignore_check_constraints = 1")
        db.execute(statement)


def test_a_hash_that_is_a_path_names_no_file(run: Path, tmp_path: Path) -> None:
    """Files that nobody needs any more are deleted by their hash."""
    other = tmp_path / "other.safetensors"
    other.write_bytes(b"somebody's")
    changed(run, "UPDATE snapshots SET hash = '../../other', removed_at = 0 WHERE number = 0")
    with opened(run) as archive:
        for action in (
            lambda: archive.entries(removed=True),
            lambda: archive.prune((), None, {}, update=5),
            lambda: archive.weights("../../other"),
        ):
            with pytest.raises(ArchiveError, match=r"is '../../other', not the hash of a snapshot"):
                action()
    assert other.exists()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE snapshots SET update_number = 'late'",
        "UPDATE snapshots SET seconds = x'00'",
        "UPDATE snapshots SET bytes = -1",
        "UPDATE snapshots SET role = x'ff'",
        "UPDATE players SET name = x'00'",
        "UPDATE results SET wins = 'many'",
        "UPDATE results SET losses = -3",
        "UPDATE ratings SET rating = 'good'",
    ],
)
def test_values_of_another_kind_are_one_line(run: Path, statement: str) -> None:
    changed(run, statement)
    with pytest.raises(ArchiveError, match=r"malformed.*move league\.sqlite away") as caught:
        standings_of(run)
    assert "\n" not in str(caught.value)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW extra AS SELECT 1",
        "CREATE TRIGGER extra AFTER INSERT ON players BEGIN DELETE FROM results; END",
    ],
)
def test_an_index_with_programs_in_it_is_not_written(run: Path, statement: str) -> None:
    changed(run, statement)
    with opened(run) as archive, pytest.raises(ArchiveError, match="holds views or triggers"):
        archive.record(3, 10, {"random": (1, 0, 0)})


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["fifo", "link", "letters", "schema"])
def test_an_index_that_is_none_is_one_line(run: Path, tmp_path: Path, kind: str) -> None:
    file = run / "league.sqlite"
    data = file.read_bytes()
    if kind == "letters":
        file.write_bytes(data.replace(b"main", b"ma\x90n"))
    elif kind == "schema":
        file.write_bytes(data.replace(b"CREATE TABLE snapshots", b"CREATE TABLE sna\x90shot("))
    else:
        file.unlink()
    if kind == "fifo":
        os.mkfifo(file)
    if kind == "link":
        (tmp_path / "outside").write_bytes(data)
        file.symlink_to(tmp_path / "outside")
    match = {"fifo": "not a regular file", "link": "a link that leaves"}
    with pytest.raises(ArchiveError, match=match.get(kind, r"move league\.sqlite away")) as caught:
        standings_of(run)
    assert "\n" not in str(caught.value)


@pytest.mark.timeout(60)
def test_a_snapshot_that_is_a_fifo_or_leaves_the_run_is_refused(run: Path, tmp_path: Path) -> None:
    with opened(run) as archive:
        fifo, link = archive.entries()
        archive.file(link.hash).rename(tmp_path / "outside")
        archive.file(link.hash).symlink_to(tmp_path / "outside")
        archive.file(fifo.hash).unlink()
        os.mkfifo(archive.file(fifo.hash))
        with pytest.raises(ArchiveError, match="not a regular file"):
            archive.weights(fifo.hash)
        with pytest.raises(ArchiveError, match="a link that leaves"):
            archive.weights(link.hash)
        with pytest.raises(ArchiveError, match="a link that leaves"):
            load_policy(archive.file(link.hash))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["fifo", "link", "larger"])
def test_a_segment_is_a_file_of_its_run_as_large_as_promised(tmp_path: Path, kind: str) -> None:
    folder = make_run(tmp_path / "run").parent
    parts = {"part": lambda: {"x": torch.arange(5)}}
    path = checkpoint.save(folder, 4, tensors={}, blobs={}, meta={}, segments=parts)
    (file,) = (folder / "segments").iterdir()
    found = checkpoint.load(path)
    if kind == "larger":
        with file.open("r+b") as data:
            data.truncate(2**40)
    else:
        file.rename(tmp_path / "outside")
        if kind == "fifo":
            os.mkfifo(file)
        else:
            file.symlink_to(tmp_path / "outside")
    match = {"fifo": "not a regular file", "link": "a link that leaves", "larger": "bytes"}[kind]
    with pytest.raises(CheckpointError, match=match):
        checkpoint.load(path)
    with pytest.raises(CheckpointError, match=match):
        found.segments["part"]()
