"""Checkpoints under everything that can happen to them: kills, full disks, rot, two writers."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sparring.errors import SparringWarning
from sparring.store import checkpoint
from sparring.store.checkpoint import BackgroundSaver, CheckpointError
from sparring.store.files import locked


def content(number: int = 1) -> dict[str, Any]:
    torch.manual_seed(number)
    return {
        "tensors": {
            "net": {"w": torch.randn(50, 40), "b": torch.zeros(3, dtype=torch.bfloat16)},
            "optimizer": {"step": torch.tensor(number), "m": torch.randn(50, 40)},
        },
        "blobs": {"games.bin": bytes(range(256)) * 40, "empty": b""},
        "meta": {"update": number, "events": [{"at": 0.1}], "best": -math.inf, "text": "ä"},
    }


def assert_equal(found: checkpoint.Checkpoint, number: int) -> None:
    expected = content(number)
    assert found.number == number
    assert found.blobs == expected["blobs"]
    assert found.meta == expected["meta"]
    assert found.tensors.keys() == expected["tensors"].keys()
    for group, tensors in expected["tensors"].items():
        assert found.tensors[group].keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert found.tensors[group][name].dtype == tensor.dtype
            assert torch.equal(found.tensors[group][name], tensor)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path / "checkpoints", 7, **content(7))
    assert path == tmp_path / "checkpoints" / "00000007"
    assert_equal(checkpoint.load(path), 7)
    assert names(path.parent) == {"00000007"}
    files = {"net.safetensors", "optimizer.safetensors", "games.bin", "empty", "manifest.json"}
    assert names(path) == files


def test_views_and_tied_weights_are_saved_by_value(tmp_path: Path) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    tensors = {"net": {"t": base.t(), "tied": base, "row": base[1], "wide": base[:1].expand(5, 4)}}
    found = checkpoint.load(checkpoint.save(tmp_path, 0, tensors=tensors, blobs={}, meta={}))
    for name, tensor in tensors["net"].items():
        assert torch.equal(found.tensors["net"][name], tensor)
    found.tensors["net"]["tied"].add_(1)
    assert torch.equal(found.tensors["net"]["t"], base.t())


def test_an_unfinished_folder_of_a_running_save_is_left_alone(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, **content(1))
    (tmp_path / ".tmp-00000002-abcd").mkdir()
    with locked(tmp_path / ".lock"):
        assert checkpoint.latest(tmp_path) == tmp_path / "00000001"
        assert (tmp_path / ".tmp-00000002-abcd").is_dir()
    checkpoint.latest(tmp_path)
    assert names(tmp_path) == {"00000001"}


def test_two_savers_in_one_folder_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "LOCK_S", 0.05)
    with (
        locked(tmp_path / ".lock"),
        pytest.raises(CheckpointError, match="another process is saving"),
    ):
        checkpoint.save(tmp_path, 1, **content(1))


# Damaged


@pytest.mark.parametrize("name", ["net.safetensors", "optimizer.safetensors", "games.bin"])
@pytest.mark.parametrize("where", [0, 9, -1])
def test_one_wrong_byte_is_found(tmp_path: Path, name: str, where: int) -> None:
    (tmp_path / "my-run").mkdir()
    for number in (1, 2, 3):
        path = checkpoint.save(tmp_path / "my-run" / "checkpoints", number, **content(number))
    data = bytearray((path / name).read_bytes())
    data[where] ^= 0x10
    (path / name).write_bytes(data)
    with pytest.raises(CheckpointError) as wrong:
        checkpoint.load(path)
    assert f"{name} is damaged" in str(wrong.value)
    assert "older one: 2, 1 (`sparring resume my-run --checkpoint 2`)" in str(wrong.value)


def test_any_wrong_byte_in_the_manifest_is_found(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, 1, **content(1))
    manifest = path / "manifest.json"
    honest = manifest.read_bytes()
    before = checkpoint.load(path)
    for at in range(len(honest)):
        wrong = bytearray(honest)
        wrong[at] ^= 0x10 if at % 2 else 0x01
        manifest.write_bytes(wrong)
        try:
            found = checkpoint.load(path)
        except CheckpointError:
            continue
        assert honest[at : at + 1].isspace(), f"byte {at} of {honest!r}"
        assert found.meta == before.meta
    for length in range(0, len(honest), 7):
        manifest.write_bytes(honest[:length])
        with pytest.raises(CheckpointError, match=r"manifest\.json is damaged"):
            checkpoint.load(path)


def test_other_damage_is_named(tmp_path: Path) -> None:
    def spoilt(spoil: Callable[[Path], Any]) -> str:
        shutil.rmtree(tmp_path / "00000005", ignore_errors=True)
        path = checkpoint.save(tmp_path, 5, **content(5))
        spoil(path)
        with pytest.raises(CheckpointError) as wrong:
            checkpoint.load(path)
        return str(wrong.value)

    def newer(path: Path) -> None:
        manifest = json.loads((path / "manifest.json").read_text())
        (path / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))

    def shorter(path: Path) -> None:
        os.truncate(path / "games.bin", 100)

    checkpoint.save(tmp_path, 4, **content(4))
    assert "games.bin has 100 bytes instead of 10240" in spoilt(shorter)
    assert "empty cannot be read (No such file" in spoilt(lambda p: (p / "empty").unlink())
    assert "has format 99, this sparring reads format 1" in spoilt(newer)
    assert "has no manifest.json" in spoilt(lambda p: (p / "manifest.json").unlink())
    assert "manifest.json is damaged" in spoilt(lambda p: (p / "manifest.json").write_text("[1]"))
    assert "does not exist; take an older one: 4" in spoilt(shutil.rmtree)


def test_the_newest_whole_one_is_taken_and_the_others_are_named(tmp_path: Path) -> None:
    assert checkpoint.newest_valid(tmp_path) is None
    assert checkpoint.latest(tmp_path / "nowhere") is None
    for number in (1, 2, 3):
        checkpoint.save(tmp_path, number, **content(number))
    (tmp_path / "00000003" / "games.bin").write_bytes(b"x")
    (tmp_path / "00000002" / "net.safetensors").unlink()
    assert checkpoint.latest(tmp_path) == tmp_path / "00000003"
    with pytest.warns(SparringWarning) as told:
        assert checkpoint.newest_valid(tmp_path) == tmp_path / "00000001"
    assert [str(w.message).partition(":")[0] for w in told] == [
        "skipped checkpoint 3",
        "skipped checkpoint 2",
    ]
    (tmp_path / "00000001" / "empty").write_bytes(b"x")
    with pytest.warns(SparringWarning), pytest.raises(CheckpointError, match="all 3 checkpoints"):
        checkpoint.newest_valid(tmp_path)


# Refused


def test_a_net_with_nan_is_never_saved(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, **content(1))
    broken = content(2)
    broken["tensors"]["net"]["w"][3, 4] = math.nan
    broken["tensors"]["net"]["w"][5, 6] = math.inf
    with pytest.raises(CheckpointError, match="net w holds 2 values that are NaN or infinite"):
        checkpoint.save(tmp_path, 2, **broken)
    assert names(tmp_path) == {"00000001"}


@pytest.mark.parametrize(
    "changes",
    [
        {"blobs": {"../outside": b""}},
        {"blobs": {"manifest.json": b""}},
        {"blobs": {"net.safetensors": b""}},
        {"tensors": {"a/b": {}}},
        {"meta": {"thing": object()}},
    ],
)
def test_what_cannot_be_kept_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError):
        checkpoint.save(tmp_path, 1, **{**content(1), **changes})
    with pytest.raises(CheckpointError, match="0 or more"):
        checkpoint.save(tmp_path, -1, **content(1))
    assert names(tmp_path) == set()


def test_a_full_disk_leaves_the_last_checkpoint_alone(small_disk: Path) -> None:
    folder = small_disk / "checkpoints"
    checkpoint.save(folder, 1, **content(1))
    for number, blob in ((2, 2_000_000), (1, 1_010_000)):  # a new one, and one in another's place
        large = {**content(1), "blobs": {"games.bin": bytes(blob)}}
        with pytest.raises(CheckpointError) as wrong:
            checkpoint.save(folder, number, **large)
        text = str(wrong.value)
        assert "No space left on device; it needs" in text
        assert "KiB are free; free some space" in text or "B are free" in text
        assert text.endswith("checkpoint 1 is untouched")
        assert names(folder) == {"00000001"}
        assert_equal(checkpoint.load(folder / "00000001"), 1)
    checkpoint.save(folder, 2, **content(2))
    assert checkpoint.checkpoint_numbers(folder) == [1, 2]


def test_a_read_only_disk_can_be_loaded_from(small_disk: Path) -> None:
    checkpoint.save(small_disk, 1, **content(1))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    path = checkpoint.newest_valid(small_disk)
    assert path is not None
    assert_equal(checkpoint.load(path), 1)
    with pytest.raises(CheckpointError, match=r"Read-only file system; it needs .* may write"):
        checkpoint.save(small_disk, 2, **content(2))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("call", ["fsync", "write", "mkdir", "rename"])
def test_an_error_of_the_system_at_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, call: str
) -> None:
    """Each call fails once at every place where a save makes it."""
    checkpoint.save(tmp_path, 1, **content(1))
    honest = getattr(os, call)
    at = 0
    while True:
        calls = 0

        def failing(*args: Any, fail_at: int = at + 1, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == fail_at:
                raise OSError(code, os.strerror(code))
            return honest(*args, **named)

        monkeypatch.setattr(os, call, failing)
        number, refused = 1 + at % 2, False  # in another's place, and as a new one
        try:
            checkpoint.save(tmp_path, number, **content(2))
        except CheckpointError as wrong:
            refused = True
            assert os.strerror(code) in str(wrong)
            assert "checkpoint 1 is untouched" in str(wrong)
        finally:
            monkeypatch.undo()
        if calls <= at:
            break
        if refused:  # a folder that cannot be made but is there is no reason to stop
            assert names(tmp_path) == {"00000001"}
            assert_equal(checkpoint.load(tmp_path / "00000001"), 1)
        else:
            assert call == "mkdir"
            checkpoint.save(tmp_path, 1, **content(1))
        at += 1
    assert at > 0


def test_a_deleted_run_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="moved or deleted"):
        checkpoint.save(tmp_path / "gone" / "checkpoints", 1, **content(1))


def test_prune_keeps_the_newest_and_the_chosen(tmp_path: Path) -> None:
    for number in (1, 2, 3, 4, 5):
        checkpoint.save(tmp_path, number, **content(number))
    assert checkpoint.prune(tmp_path, keep=2, always={2, 99}) == [1, 3]
    assert checkpoint.checkpoint_numbers(tmp_path) == [2, 4, 5]
    assert names(tmp_path) == {"00000002", "00000004", "00000005"}
    with pytest.raises(CheckpointError, match="at least 1"):
        checkpoint.prune(tmp_path, keep=0)


# In the background


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A disk that does not answer until the event is set."""
    answer, honest = threading.Event(), os.fsync

    def fsync(handle: int) -> None:
        assert answer.wait(30)
        honest(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    yield answer
    answer.set()


def test_submit_does_not_wait_for_the_disk(tmp_path: Path, slow_disk: threading.Event) -> None:
    given = content(1)
    with BackgroundSaver(tmp_path) as saver:
        saver.submit(1, **given)  # returns although the disk does not answer
        assert checkpoint.latest(tmp_path) is None
        given["meta"]["events"].clear()  # what is plain is copied, tensors are handed over
        second = threading.Thread(target=lambda: saver.submit(2, **content(2)))
        second.start()
        second.join(0.1)
        assert second.is_alive()  # at most one save is under way
        slow_disk.set()
        second.join(30)
        assert saver.wait() == tmp_path / "00000002"
        assert saver.wait() is None
    assert_equal(checkpoint.load(tmp_path / "00000001"), 1)
    assert_equal(checkpoint.load(tmp_path / "00000002"), 2)


def test_an_error_of_the_thread_is_raised_by_the_next_call(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    broken = content(1)
    broken["tensors"]["net"]["w"][0, 0] = math.nan
    saver = BackgroundSaver(folder)
    saver.submit(1, **broken)
    with pytest.raises(CheckpointError, match="NaN"):
        saver.submit(2, **content(2))
    saver.submit(3, **content(3))
    assert saver.wait() == folder / "00000003"
    shutil.rmtree(tmp_path)
    saver.submit(4, **content(4))
    with pytest.raises(CheckpointError, match="moved or deleted"):
        saver.close()
    saver.close()
    with pytest.raises(CheckpointError, match="closed"):
        saver.submit(5, **content(5))


def test_the_first_error_is_the_one_that_is_seen(tmp_path: Path) -> None:
    with pytest.raises(KeyError) as seen, BackgroundSaver(tmp_path / "a" / "b") as saver:
        saver.submit(1, **content(1))
        raise KeyError("training failed")
    assert "moved or deleted" in seen.value.__notes__[0]


def test_a_process_that_ends_finishes_its_save(tmp_path: Path) -> None:
    text = (
        "import sys, torch; from pathlib import Path; from sparring.store import checkpoint\n"
        "saver = checkpoint.BackgroundSaver(Path(sys.argv[1]))\n"
        "saver.submit(1, tensors={'net': {'w': torch.zeros(1000, 1000)}}, blobs={}, meta={})\n"
    )
    subprocess.run([sys.executable, "-c", text, str(tmp_path)], check=True, timeout=60)
    assert checkpoint.load(tmp_path / "00000001").tensors["net"]["w"].shape == (1000, 1000)
