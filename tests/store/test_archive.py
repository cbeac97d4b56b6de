"""The archive of past selves under what happens to it: rot, full disks, going back, bounds."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.store import checkpoint
from sparring.store.archive import (
    MATCH,
    Archive,
    ArchiveError,
    ArchiveIndex,
    SnapshotEntry,
    copy_archive,
    snapshots_in_slots,
)
from sparring.store.checkpoint import CheckpointError
from sparring.store.policies import load_policy, policy_meta


def weights(number: float, size: int = 64) -> dict[str, Tensor]:
    return {"w": torch.full((size,), float(number)), "b": torch.zeros(3, dtype=torch.bfloat16)}


def keep(archive: Archive, update: int, *, member: str = "a", size: int = 64) -> SnapshotEntry:
    return archive.add(
        weights(update, size),
        role="main",
        member=member,
        update=update,
        decisions=update * 100,
        seconds=update / 2,
    )


def opened(folder: Path, max_bytes: int = 2**30) -> Archive:
    return Archive(folder, max_bytes=max_bytes)


def files(folder: Path) -> set[str]:
    return {path.stem for path in (folder / "league").iterdir()}


def test_a_snapshot_comes_back_to_the_bit_and_the_order_is_kept(tmp_path: Path) -> None:
    with opened(tmp_path) as archive:
        made = [keep(archive, update) for update in (10, 20, 30)]
        assert [entry.number for entry in made] == [0, 1, 2]
        assert made[1].name == f"{tmp_path.name}/past/1"
        found = archive.weights(made[1].hash)
        assert all(torch.equal(found[name], value) for name, value in weights(20).items())
        assert found["b"].dtype == torch.bfloat16
    # Another process, and readers after the end.
    index = ArchiveIndex(tmp_path)
    assert index.entries() == made
    assert {path.name for path in tmp_path.iterdir()} == {"league.sqlite", "league"}
    first = index.entries()[0]
    assert (first.role, first.member, first.update, first.decisions) == ("main", "a", 10, 1000)
    assert first.bytes == index.file(first.hash).stat().st_size


def test_a_run_without_a_league_has_an_empty_archive_and_reading_makes_no_file(
    tmp_path: Path,
) -> None:
    archive = opened(tmp_path)
    assert (archive.entries(), archive.totals(), archive.ratings()) == ([], {}, [])
    archive.forget_after(0)
    archive.close()
    assert not list(tmp_path.iterdir())


def test_the_same_weights_twice_are_one_file_and_one_entry(tmp_path: Path) -> None:
    with opened(tmp_path) as archive:
        one = keep(archive, 10)
        again = archive.add(
            weights(10), role="main", member="b", update=99, decisions=1, seconds=1.0
        )
        assert again == one
        assert files(tmp_path) == {one.hash}
        assert keep(archive, 20).number == 1


def test_weights_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    with pytest.raises(ArchiveError, match="w holds numbers that are not finite"):
        keep(archive, float("nan"))  # type: ignore[arg-type]
    assert archive.entries() == []


@pytest.mark.parametrize("warm", [False, True])
def test_a_damaged_snapshot_is_noticed_even_if_it_was_in_memory(tmp_path: Path, warm: bool) -> None:
    archive = opened(tmp_path)
    entry = keep(archive, 10)
    if warm:
        archive.weights(entry.hash)
    file = archive.file(entry.hash)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(CheckpointError, match="is damaged") as wrong:
        archive.weights(entry.hash)
    assert str(file) in str(wrong.value)
    assert len(str(wrong.value).splitlines()) == 1


def test_a_missing_snapshot_is_one_clear_line_and_the_others_are_there(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    gone, there = keep(archive, 10), keep(archive, 20)
    archive.weights(gone.hash)
    archive.file(gone.hash).unlink()
    with pytest.raises(ArchiveError, match=r"cannot be read: No such file.*take another one"):
        archive.weights(gone.hash)
    assert torch.equal(archive.weights(there.hash)["w"], weights(20)["w"])


def test_a_file_that_is_no_database_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "league.sqlite").write_bytes(b"no database at all" * 100)
    archive = opened(tmp_path)
    for action in (archive.entries, lambda: keep(archive, 1)):
        with pytest.raises(ArchiveError, match=r"not a database; move league\.sqlite away"):
            action()
    assert not (tmp_path / "league").exists() or not files(tmp_path)


# A full disk


def test_a_full_disk_loses_nothing_that_was_there(small_disk: Path) -> None:
    archive = opened(small_disk)
    first = keep(archive, 10)
    archive.record(10, 1000, {"random": (1, 0, 0)})
    with pytest.raises(ArchiveError, match="free some space"):
        keep(archive, 20, size=300_000)  # 1.2 MB of floats
    assert archive.entries() == [first]
    assert files(small_disk) == {first.hash}
    assert keep(archive, 30).number == 1


def test_results_that_found_no_space_are_written_with_the_next_ones(small_disk: Path) -> None:
    archive = opened(small_disk)
    archive.record(1, 100, {"random": (1, 0, 0)})
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as out:
        while True:
            out.write(bytes(4096))
    failed = 0
    for update in range(2, 400):  # until what the index had set aside for itself is used up
        try:
            archive.record(update, update * 100, {f"bot {update}": (0, 1, 0)})
        except ArchiveError as wrong:
            assert "free some space" in str(wrong)
            failed += 1
    assert failed
    filler.unlink()
    archive.record(400, 40_000, {"random": (2, 0, 0)})
    totals = archive.totals()
    assert totals.pop("random") == (3, 0, 0)
    assert totals == {f"bot {update}": (0, 1, 0) for update in range(2, 400)}


# Several writers


def test_two_writers_in_threads_never_share_a_number(tmp_path: Path) -> None:
    archives = [opened(tmp_path), opened(tmp_path)]

    def work(which: int) -> None:
        for update in range(10):
            keep(archives[which], update * 2 + which, member=str(which))
            archives[which].record(update, update, {"bot": (1, 0, 0)}, member=str(which))

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = ArchiveIndex(tmp_path).entries()
    assert [entry.number for entry in entries] == list(range(20))
    assert {entry.update for entry in entries} == set(range(20))
    assert ArchiveIndex(tmp_path).totals() == {"bot": (20, 0, 0)}
    assert ArchiveIndex(tmp_path).totals(member="1") == {"bot": (10, 0, 0)}


@pytest.mark.slow
def test_a_killed_writer_leaves_an_archive_that_others_go_on_with(tmp_path: Path) -> None:
    code = """
import os, sys, torch
from pathlib import Path
from sparring.store.archive import Archive
archive = Archive(Path(sys.argv[1]), max_bytes=2**30)
for update in (1, 2):
    archive.add({"w": torch.full((9,), float(update))}, role="main", member="a", update=update,
                decisions=update, seconds=0.0)
os._exit(1)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == 1
    with opened(tmp_path) as archive:
        assert [entry.number for entry in archive.entries()] == [0, 1]
        assert keep(archive, 3).number == 2


# Results and ratings


def test_results_add_up_by_opponent_kind_and_time(tmp_path: Path) -> None:
    with opened(tmp_path) as archive:
        past = keep(archive, 5).hash
        archive.record(10, 1000, {past: (3, 1, 2), "random": (5, 0, 0)})
        archive.record(20, 2000, {past: (1, 0, 0)})
        archive.record(20, 2000, {past: (7, 2, 1)}, MATCH)
        archive.record(20, 2000, {past: (1, 0, 0)})  # again: nothing counts twice
    index = ArchiveIndex(tmp_path)
    assert index.totals() == {past: (4, 1, 2), "random": (5, 0, 0)}
    assert index.totals(after=10) == {past: (1, 0, 0)}
    assert index.totals(MATCH) == {past: (7, 2, 1)}
    assert index.totals(MATCH)[past].share == 0.8
    curve = [(r.update, r.decisions, r.tally) for r in index.results() if r.opponent == past]
    assert curve == [(10, 1000, (3, 1, 2)), (20, 2000, (1, 0, 0))]


def test_ratings_are_kept_over_time(tmp_path: Path) -> None:
    with opened(tmp_path) as archive:
        archive.rate(10, 1000, {"self": (50.0, 40.0, 60.0), "random": (0.0, 0.0, 0.0)})
        archive.rate(20, 2000, {"self": (90.0, 80.0, 99.0)})
        assert [(r.update, r.player, r.rating) for r in archive.ratings()] == [
            (10, "random", 0.0),
            (10, "self", 50.0),
            (20, "self", 90.0),
        ]
        last = archive.last_ratings()
    assert last["self"] == (20, 2000, "self", 90.0, 80.0, 99.0)
    assert last["random"].update == 10


# Going back


def test_a_run_that_goes_back_has_the_archive_of_then(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    kept = [keep(archive, update) for update in (10, 20)]
    archive.record(20, 2000, {kept[0].hash: (1, 0, 0)})
    archive.rate(20, 2000, {"self": (1.0, 0.0, 2.0)})
    before = archive.entries()
    later, needed = keep(archive, 30), keep(archive, 40)
    archive.record(40, 4000, {later.hash: (1, 0, 0)})
    archive.rate(40, 4000, {"self": (9.0, 0.0, 2.0)})
    archive.forget_after(20, needed=[needed.hash])
    assert archive.entries() == before
    assert archive.totals() == {kept[0].hash: (1, 0, 0)}
    assert [rated.update for rated in archive.ratings()] == [20]
    assert files(tmp_path) == {kept[0].hash, kept[1].hash, needed.hash}
    # The file of a checkpoint that is kept can still be loaded, and numbers repeat.
    assert archive.weights(needed.hash)
    assert keep(archive, 30) == later


def test_what_was_removed_after_a_checkpoint_is_back_when_the_run_resumes_there(
    tmp_path: Path,
) -> None:
    archive = opened(tmp_path)
    entries = [keep(archive, update) for update in range(6)]
    archive.max_bytes = 4 * entries[0].bytes
    gone = archive.prune([], None, {}, update=8, oldest=5)
    assert len(gone) == 2
    assert [entry.hash for entry in archive.entries()] != [entry.hash for entry in entries]
    archive.forget_after(5)
    assert archive.entries() == entries
    # Once every checkpoint is younger the files go, and are not brought back.
    archive.prune([], None, {}, update=8, oldest=5)
    archive.prune([], None, {}, update=9, oldest=8)
    assert files(tmp_path) == {entry.hash for entry in archive.entries()}
    archive.forget_after(8)
    assert len(archive.entries()) == 4
    assert len(archive.entries(removed=True)) == 6


def test_a_member_that_goes_back_leaves_the_others_alone(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    for update, member in ((1, "a"), (2, "b"), (3, "a"), (4, "b")):
        keep(archive, update, member=member)
        archive.record(update, update, {"bot": (1, 0, 0)}, member=member)
    archive.forget_after(1, member="a")
    assert [entry.update for entry in archive.entries()] == [1, 2, 4]
    assert archive.totals(member="a") == {"bot": (1, 0, 0)}
    assert archive.totals(member="b") == {"bot": (2, 0, 0)}


def test_a_branch_has_the_same_past_and_loses_nothing_when_the_other_prunes(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    archive = opened(one, max_bytes=1)
    entries = [keep(archive, update) for update in (1, 2, 3)]
    archive.record(3, 3, {"bot": (1, 0, 0)})
    copy_archive(one, two)
    archive.prune([], None, {})
    branch = opened(two)
    branch.forget_after(2)
    assert [entry.hash for entry in branch.entries()] == [entry.hash for entry in entries[:2]]
    assert branch.totals() == {}
    assert torch.equal(branch.weights(entries[0].hash)["w"], weights(1)["w"])
    assert archive.totals() == {"bot": (1, 0, 0)}


# A bound on the disk


def test_pruning_keeps_newest_best_needed_and_both_ends(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    entries = [keep(archive, update) for update in range(20)]
    ratings = {entry.hash: float(entry.number) for entry in entries}
    ratings[entries[7].hash] = 500.0
    archive.max_bytes = 5 * entries[0].bytes
    gone = archive.prune({entries[3].hash, entries[4].hash}, entries[9].hash, ratings)
    left = {entry.number for entry in archive.entries()}
    assert {3, 4, 9, 19} <= left
    assert len(left) == 5
    assert len(gone) == 15
    assert files(tmp_path) == {entry.hash for entry in archive.entries()}
    for entry in archive.entries():
        archive.weights(entry.hash)


def test_pruning_removes_those_that_resemble_others(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    entries = [keep(archive, update) for update in range(9)]
    ratings = [0.0, 100.0, 101.0, 102.0, 103.0, 300.0, 500.0, 700.0, 800.0]
    rated = {entry.hash: rating for entry, rating in zip(entries, ratings, strict=True)}
    archive.max_bytes = 7 * entries[0].bytes
    gone = archive.prune([], None, rated)
    assert {entry.number for entry in gone} == {2, 3}


def test_without_ratings_what_is_left_is_spread_over_time(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    for update in range(40):
        entry = keep(archive, update)
        archive.max_bytes = 6 * entry.bytes
        archive.prune([], None, {})
    left = [entry.number for entry in archive.entries()]
    assert (left[0], left[-1], len(left)) == (0, 39, 6)
    assert max(b - a for a, b in itertools.pairwise(left)) <= 20


def test_nothing_that_is_needed_goes_even_if_the_bound_is_too_small(tmp_path: Path) -> None:
    archive = opened(tmp_path, max_bytes=1)
    entries = [keep(archive, update) for update in range(3)]
    assert archive.prune([entries[0].hash, entries[1].hash], None, {}) == []
    assert [entry.number for entry in archive.prune([entries[1].hash], None, {})] == [0]


def test_what_checkpoints_have_in_their_slots_is_needed(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    metas = [
        {"league": {"slots": {"1": {"hash": "aa"}, "2": {"hash": "bb", "greedy": True}}}},
        {"league": {"slots": {"1": {"hash": "cc"}, "2": {}}}},
        {"league": {}},
        {},
    ]
    for number, meta in enumerate(metas):
        checkpoint.save(folder, number, tensors={"net": weights(1)}, blobs={}, meta=meta)
    assert snapshots_in_slots(folder) == {"aa", "bb", "cc"}
    (folder / "00000001" / "manifest.json").write_text("{")  # damaged: nobody resumes from it
    assert snapshots_in_slots(folder) == {"aa", "bb"}
    assert snapshots_in_slots(tmp_path / "nowhere") == set()


def test_a_snapshot_of_networks_by_role_is_a_policy(tmp_path: Path) -> None:
    """Whatever order its roles have in the file, which sorts them."""
    rules = Rules("kuhhandel")
    roles = dict.fromkeys(rules.roles, NetConfig(hidden=(8,)))
    assert list(roles) != sorted(roles)
    net = make_net(rules, NetConfig(), roles=roles)
    with Archive(tmp_path, max_bytes=10**9, policy=policy_meta(rules, net)) as archive:
        entry = archive.add(
            net.state_dict(), role="main", member="", update=1, decisions=1, seconds=1.0
        )
    loaded = load_policy(archive.file(entry.hash)).net.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in net.state_dict().items())
