"""Segments: written once, shared by checkpoints, and gone when nobody needs them."""

from __future__ import annotations

import errno
import math
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from sparring.errors import SparringWarning
from sparring.store import checkpoint
from sparring.store.checkpoint import BackgroundSaver, CheckpointError
from sparring.store.manifest import make_checkpoint
from sparring.store.segments import SEGMENTS, link_segments

Read = Callable[[], dict[str, Tensor]]


def rows(number: int, count: int = 64) -> dict[str, Tensor]:
    made = torch.Generator().manual_seed(number)
    return {
        "obs": torch.randint(0, 255, (count, 90), generator=made, dtype=torch.uint8),
        "paid": torch.rand(count, generator=made),
    }


def remembered(*numbers: int) -> dict[str, Read]:
    return {f"part-{number}": lambda number=number: rows(number) for number in numbers}


def content(number: int, *parts: int) -> dict[str, Any]:
    tensors = {"net": {"w": torch.full((5, 4), float(number))}}
    segments = remembered(*parts)
    return {"tensors": tensors, "blobs": {}, "meta": {"update": number}, "segments": segments}


def files(folder: Path) -> set[str]:
    place = folder / SEGMENTS
    return {path.name for path in place.iterdir()} if place.is_dir() else set()


def file_of(folder: Path, number: int, part: int) -> Path:
    file: Path = (
        checkpoint.load(folder / f"{number:08d}", segments=False)
        .segments[  # type: ignore[attr-defined]
            f"part-{part}"
        ]
        .file
    )
    return file


def assert_remembers(path: Path, *parts: int) -> None:
    found = checkpoint.load(path).segments
    assert list(found) == [f"part-{part}" for part in parts]
    for part in parts:
        read = found[f"part-{part}"]()
        assert read.keys() == rows(part).keys()
        assert all(torch.equal(read[name], tensor) for name, tensor in rows(part).items())


def forbidden() -> dict[str, Tensor]:
    raise AssertionError("what is on the disk was asked for again")


def bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


# Saving


def test_a_save_reads_and_writes_what_is_new(tmp_path: Path) -> None:
    with BackgroundSaver(tmp_path) as saver:
        saver.submit(1, **content(1, 1, 2, 3))
        saver.wait()
        before = {file.name: file.stat().st_mtime_ns for file in (tmp_path / SEGMENTS).iterdir()}
        size = bytes_in(tmp_path)
        second = content(2, 1, 2, 3, 4)
        second["segments"] |= dict.fromkeys(("part-1", "part-2", "part-3"), forbidden)
        saver.submit(2, **second)
        saver.wait()
        after = {file.name: file.stat().st_mtime_ns for file in (tmp_path / SEGMENTS).iterdir()}
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1
    new = sum(tensor.nbytes for tensor in rows(4).values())
    assert new < bytes_in(tmp_path) - size < new + 2500  # and a small checkpoint
    assert_remembers(tmp_path / "00000001", 1, 2, 3)
    assert_remembers(tmp_path / "00000002", 1, 2, 3, 4)


def test_who_goes_on_from_a_checkpoint_writes_what_is_new(tmp_path: Path) -> None:
    saved = checkpoint.load(checkpoint.save(tmp_path, 1, **content(1, 1, 2)))
    with BackgroundSaver(tmp_path, saved.segments) as saver:
        second = content(2, 1, 2, 3)
        second["segments"] |= dict.fromkeys(("part-1", "part-2"), forbidden)
        saver.submit(2, **second)
        saver.wait()
    assert_remembers(tmp_path / "00000002", 1, 2, 3)


def test_what_a_dead_process_left_is_never_taken_for_the_same_name(tmp_path: Path) -> None:
    """A run that goes back and on otherwise has other contents under the names of then."""
    checkpoint.save(tmp_path, 1, **content(1, 1))
    checkpoint.save(tmp_path, 2, **content(2, 1, 2))
    saved = checkpoint.load(tmp_path / "00000001")
    with BackgroundSaver(tmp_path, saved.segments) as saver:
        other = content(3, 1, 2)
        other["segments"]["part-2"] = lambda: rows(99)
        saver.submit(3, **other)
        saver.wait()
    assert_remembers(tmp_path / "00000002", 1, 2)
    found = checkpoint.load(tmp_path / "00000003").segments["part-2"]()
    assert torch.equal(found["obs"], rows(99)["obs"])


def test_segments_are_copied_before_submit_returns(tmp_path: Path) -> None:
    ring = rows(1)
    first = content(1)
    first["segments"] = {"part-1": lambda: {name: t.clone() for name, t in ring.items()}}
    saver, gate = BackgroundSaver(tmp_path), threading.Event()
    saver._writer.submit(gate.wait, 30)  # the thread has something else to do
    saver.submit(1, **first)
    for tensor in ring.values():
        tensor.zero_()
    gate.set()
    saver.close()
    assert_remembers(tmp_path / "00000001", 1)


def test_one_that_was_deleted_meanwhile_is_written_again(tmp_path: Path) -> None:
    with BackgroundSaver(tmp_path) as saver:
        saver.submit(1, **content(1, 1, 2))
        saver.wait()
        file_of(tmp_path, 1, 2).unlink()
        saver.submit(2, **content(2, 1, 2))
        saver.wait()
    assert_remembers(tmp_path / "00000002", 1, 2)


def test_a_checkpoint_without_segments_is_as_it_was(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, 1, **content(1))
    assert not (tmp_path / SEGMENTS).exists()
    assert "segments" not in (path / "manifest.json").read_text()
    assert dict(checkpoint.load(path).segments) == {}


def test_a_snapshot_is_copied_once() -> None:
    """It is a copy already; what shares memory is still taken apart."""
    base = torch.arange(12.0).reshape(3, 4)
    net = {"whole": torch.ones(5), "base": base, "turned": base.t(), "row": base[1]}
    found = make_checkpoint(1, {"net": net}, {}, {}, {}).tensors["net"]
    assert found["whole"].data_ptr() == net["whole"].data_ptr()
    assert len({tensor.untyped_storage().data_ptr() for tensor in found.values()}) == 4
    assert all(torch.equal(found[name], tensor) for name, tensor in net.items())


# Damage


def flip(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 0x10
    file.write_bytes(raw)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (flip, "is damaged (sha256 differs)"),
        (Path.unlink, "cannot be read (No such file"),
        (lambda file: os.truncate(file, 100), "has 100 bytes instead of"),
    ],
)
def test_a_damaged_segment_falls_back_to_the_checkpoint_before(
    tmp_path: Path, spoil: Callable[[Path], None], what: str
) -> None:
    folder = tmp_path / "my-run" / "checkpoints"
    folder.parent.mkdir()
    for number, parts in ((1, (1,)), (2, (1, 2)), (3, (1, 2, 3))):
        checkpoint.save(folder, number, **content(number, *parts))
    assert checkpoint.newest_valid(folder) == folder / "00000003"
    reader = checkpoint.load(folder / "00000003").segments["part-3"]
    spoil(file_of(folder, 3, 3))
    assert not checkpoint.is_valid(folder / "00000003")
    with pytest.warns(SparringWarning, match="skipped checkpoint 3"):
        assert checkpoint.newest_valid(folder) == folder / "00000002"
    with pytest.raises(CheckpointError) as wrong:
        checkpoint.load(folder / "00000003")
    assert f"segment part-3 {what}" in str(wrong.value)
    assert "`sparring resume my-run --clear-replay`" in str(wrong.value)
    assert "older one: 2, 1 (`sparring resume my-run --checkpoint 2`)" in str(wrong.value)
    with pytest.raises(CheckpointError, match="segment part-3"):
        reader()
    # Who only plays needs none of them.
    assert checkpoint.is_valid(folder / "00000003", segments=False)
    assert checkpoint.newest_valid(folder, segments=False) == folder / "00000003"
    assert checkpoint.rename_damaged(folder, after=2) == [3]
    assert_remembers(folder / "00000002", 1, 2)


def test_damage_that_all_of_them_share_says_what_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "my-run" / "checkpoints"
    folder.parent.mkdir()
    for number in (1, 2):
        checkpoint.save(folder, number, **content(number, 7))
    flip(file_of(folder, 1, 7))
    with (
        pytest.warns(SparringWarning),
        pytest.raises(CheckpointError, match="`sparring resume my-run --clear-replay`, or start"),
    ):
        checkpoint.newest_valid(folder)


# Removing


def test_prune_removes_the_segments_that_nobody_names(tmp_path: Path) -> None:
    for number in range(1, 6):
        checkpoint.save(tmp_path, number, **content(number, number - 1, number))
    assert len(files(tmp_path)) == 6  # 0 to 5
    assert checkpoint.prune(tmp_path, keep=2, always={1}) == [2, 3]
    assert_remembers(tmp_path / "00000001", 0, 1)
    assert_remembers(tmp_path / "00000004", 3, 4)
    assert_remembers(tmp_path / "00000005", 4, 5)
    assert len(files(tmp_path)) == 5  # 2 is gone
    flip(file_of(tmp_path, 5, 5))
    checkpoint.rename_damaged(tmp_path, after=4)
    checkpoint.prune(tmp_path, keep=1)
    assert len(files(tmp_path)) == 2  # what was set aside needs none
    assert_remembers(tmp_path / "00000004", 3, 4)


def test_leftovers_go_and_a_folder_without_segments_too(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, **content(1, 1))
    for name in ("0" * 64 + ".safetensors", ".tmp-0000-abcd"):
        (tmp_path / SEGMENTS / name).write_bytes(b"half")
    checkpoint.remove_unused_segments(tmp_path)
    assert_remembers(tmp_path / "00000001", 1)
    assert len(files(tmp_path)) == 1
    checkpoint.save(tmp_path, 2, **content(2))
    checkpoint.prune(tmp_path, keep=1)
    assert not (tmp_path / SEGMENTS).exists()


def test_a_save_under_way_keeps_what_it_relies_on(tmp_path: Path) -> None:
    saver, gate = BackgroundSaver(tmp_path), threading.Event()
    for number, parts in ((1, (1, 2)), (2, (3,))):
        saver.submit(number, **content(number, *parts))
        saver.wait()
    saver._known |= checkpoint.load(tmp_path / "00000001").segments
    saver._writer.submit(gate.wait, 30)  # so that the save has not even begun
    third = content(3, 2, 3)
    third["segments"] |= dict.fromkeys(("part-2", "part-3"), forbidden)
    saver.submit(3, **third)
    assert checkpoint.prune(tmp_path, keep=1, needed=saver.needed) == [1]
    gate.set()
    saver.close()
    assert_remembers(tmp_path / "00000003", 2, 3)
    assert saver.needed == set()
    assert len(files(tmp_path)) == 2


def test_a_checkpoint_that_cannot_be_asked_keeps_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        checkpoint.save(tmp_path, number, **content(number, number))
    honest = Path.read_bytes

    def failing(path: Path) -> bytes:
        if path.parent.name == "00000001":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return honest(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", failing)
        checkpoint.remove_unused_segments(tmp_path)
    assert_remembers(tmp_path / "00000001", 1)


# Disks


def test_a_full_disk_leaves_checkpoints_and_no_half_segments(small_disk: Path) -> None:
    folder = small_disk / "checkpoints"
    checkpoint.save(folder, 1, **content(1, 1))
    before = files(folder)
    large = content(2, 1, 2)
    large["segments"] |= {f"large-{n}": lambda n=n: rows(n, 4_000) for n in range(5)}
    saver = BackgroundSaver(folder)
    saver.submit(2, **large)
    for save in (saver.close, lambda: checkpoint.save(folder, 2, **large)):
        with pytest.raises(CheckpointError, match="No space left on device; it needs") as wrong:
            save()
        assert str(wrong.value).endswith("checkpoint 1 is untouched")
        assert files(folder) == before
        assert_remembers(folder / "00000001", 1)
    checkpoint.save(folder, 2, **content(2, 1, 2))
    assert_remembers(folder / "00000002", 1, 2)


@pytest.mark.parametrize("call", ["fsync", "write", "mkdir", "rename", "replace"])
def test_an_error_of_the_system_at_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    honest, at, refused = getattr(os, call), 0, True
    while refused:
        folder, calls, refused = tmp_path / str(at), 0, False
        checkpoint.save(folder, 1, **content(1, 1))
        before = files(folder)

        def failing(*args: Any, fail_at: int = at + 1, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == fail_at:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return honest(*args, **named)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing)
            try:
                checkpoint.save(folder, 2, **content(2, 1, 2))
            except CheckpointError as wrong:
                refused = True
                assert "checkpoint 1 is untouched" in str(wrong)
        assert files(folder) == before or not refused
        assert_remembers(folder / "00000001", 1)
        refused = refused or calls > at  # a folder that is there need not be made
        at += 1
    assert at > 1
    assert_remembers(folder / "00000002", 1, 2)


# Elsewhere


def test_one_that_is_saved_alone_can_be_moved(tmp_path: Path) -> None:
    made = checkpoint.save(tmp_path / "elsewhere", 3, **content(3, 1, 2), standalone=True)
    run = tmp_path / "run"
    checkpoint.save(run, 1, **content(1, 1))
    path = Path(shutil.move(made, run / made.name))
    assert_remembers(path, 1, 2)
    saved = checkpoint.load(path)
    with BackgroundSaver(run, saved.segments) as saver:
        saver.submit(4, **content(4, 1, 2))
        saver.wait()
    checkpoint.prune(run, keep=1)
    assert_remembers(run / "00000004", 1, 2)


def test_copies_of_checkpoints_get_links(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for number in (1, 2, 3):
        checkpoint.save(here, number, **content(number, 1, number + 10))
    there.mkdir()
    for number in (1, 3):
        shutil.copytree(here / f"{number:08d}", there / f"{number:08d}")
    for _ in range(2):  # what is there already stays
        link_segments(here, there)
    assert len(files(there)) == 3
    assert file_of(there, 3, 13).stat().st_ino == file_of(here, 3, 13).stat().st_ino
    shutil.rmtree(here)
    assert_remembers(there / "00000001", 1, 11)
    assert_remembers(there / "00000003", 1, 13)


def test_a_net_with_nan_writes_no_segments(tmp_path: Path) -> None:
    broken = content(1, 1)
    broken["tensors"]["net"]["w"][0, 0] = math.nan
    with pytest.raises(CheckpointError, match="NaN"):
        checkpoint.save(tmp_path, 1, **broken)
    assert files(tmp_path) == set()
