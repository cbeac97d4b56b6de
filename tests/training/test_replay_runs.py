"""Runs of a learner that remembers: saved in segments, resumed to the bit, branched, cleared."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import sparring
from learn.rememberer import MOST
from sparring.cli import main
from sparring.errors import ConfigError, SparringWarning
from sparring.store import checkpoint as checkpoints
from sparring.store.policies import load_policy
from sparring.store.segments import SEGMENTS, StoredSegment
from sparring.training.callbacks import Callbacks
from sparring.training.records.overview import size_of
from sparring.training.train import resume, train_with
from training.run_helpers import events, settings, trained
from training.test_setbacks import fill

ALGO = {"algo": "learn.rememberer:make", "collect": {"games": 8, "steps": 6}}


def remembering(runs: Path, **changes: Any) -> sparring.Agent:
    return trained(runs, **ALGO | {"opponents": ("random=1",)} | changes)


def saved(run: Path, number: int) -> checkpoints.Checkpoint:
    return checkpoints.load(run / "checkpoints" / f"{number:08d}")


def files(run: Path) -> set[str]:
    return {path.name for path in (run / "checkpoints" / SEGMENTS).iterdir()}


def written_at(run: Path) -> dict[str, int]:
    place = run / "checkpoints" / SEGMENTS
    return {path.name: path.stat().st_mtime_ns for path in place.iterdir()}


def named(run: Path) -> set[str]:
    """The files that the checkpoints of a run need."""
    found = [saved(run, n).segments for n in checkpoints.checkpoint_numbers(run / "checkpoints")]
    return {r.file_name for each in found for r in each.values() if isinstance(r, StoredSegment)}


def spoil(run: Path, number: int, *, last: bool = True) -> None:
    """Damage a segment of a checkpoint: the newest, or the oldest."""
    read = list(saved(run, number).segments.values())[-1 if last else 0]
    assert isinstance(read, StoredSegment)
    raw = bytearray(read.file.read_bytes())
    raw[-1] ^= 1
    read.file.write_bytes(raw)


def assert_same(one: checkpoints.Checkpoint, two: checkpoints.Checkpoint) -> None:
    assert one.blobs == two.blobs
    assert list(one.segments) == list(two.segments)
    for name, read in one.segments.items():
        assert torch.equal(read()["rows"], two.segments[name]()["rows"])
    for group, tensors in one.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, two.tensors[group][name]), (group, name)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> sparring.Agent:
    """Twelve updates with all their checkpoints; to be copied before it is changed."""
    return remembering(tmp_path_factory.mktemp("runs"), updates=12, keep=20, name="whole")


@pytest.fixture
def run(finished: sparring.Agent, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished.run, tmp_path / "my-run"))


def test_a_resumed_run_remembers_the_same_to_the_bit(
    finished: sparring.Agent, tmp_path: Path
) -> None:
    half = remembering(tmp_path, updates=10, keep=2)
    assert files(half.run) == named(half.run)
    before, written = files(half.run), written_at(half.run)
    for left in (".tmp-half", f"{'0' * 64}.safetensors"):
        (half.run / "checkpoints" / SEGMENTS / left).write_bytes(b"of a killed save")
    seen: list[set[str]] = []
    again = resume(
        str(half.run), updates=12, quiet=True, on_update=lambda _: seen.append(files(half.run))
    )
    assert seen[0] == before  # and not only after the first save
    kept = written.items() & written_at(half.run).items()
    assert len(kept) == len(before & files(half.run)) > 0  # none of them was written again
    assert_same(saved(finished.run, 12), saved(again.run, 12))
    assert len(saved(again.run, 12).segments) == MOST
    assert files(again.run) == named(again.run)
    assert before - files(again.run)  # what was forgotten by now takes no space


def test_going_back_brings_what_was_remembered_then(finished: sparring.Agent, run: Path) -> None:
    new = resume(str(run), number=8, updates=12, quiet=True)
    assert new.run != run
    shutil.rmtree(run)
    assert_same(saved(finished.run, 12), saved(new.run, 12))
    assert size_of(new.run) > size_of(new.run / "checkpoints" / SEGMENTS) > 0


def test_a_damaged_segment_is_passed_over(finished: sparring.Agent, run: Path) -> None:
    for number in (10, 11):
        shutil.rmtree(run / "checkpoints" / f"{number:08d}")
    fresh = {*saved(run, 12).segments} - {*saved(run, 9).segments}
    assert fresh  # so that 9 does not need it
    spoil(run, 12)
    assert load_policy(run).meta["update"] == 12  # who plays needs no memory
    with pytest.warns(SparringWarning, match="skipped checkpoint 12.*--clear-replay"):
        again = resume(str(run), updates=12, quiet=True)
    assert_same(saved(finished.run, 12), saved(again.run, 12))
    assert (run / "checkpoints" / "damaged-00000012").is_dir()
    assert files(run) == named(run)


def test_a_checkpoint_that_is_asked_for_and_damaged_makes_no_run(run: Path) -> None:
    spoil(run, 6, last=False)
    with pytest.raises(checkpoints.CheckpointError, match=r"is damaged .sha256 differs"):
        resume(str(run), number=6, quiet=True)
    assert [path.name for path in run.parent.iterdir()] == ["my-run"]


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_the_replay_is_begun_anew_when_asked_and_damage_does_not_matter(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(run, 12)
    for number in range(12):
        shutil.rmtree(run / "checkpoints" / f"{number:08d}", ignore_errors=True)
    assert main(["resume", str(run), "--updates", "14"]) == 3
    assert "`sparring resume my-run --clear-replay`" in capsys.readouterr().err
    again = resume(str(run), updates=14, clear_replay=True, quiet=True)
    assert list(saved(again.run, 14).segments) == ["14"]  # 13 and 14 filled one
    assert [e["update"] for e in events(run) if e["event"] == "replay cleared"] == [12]
    assert again.policy.meta["decisions"] > saved(run, 13).meta["decisions"]


def test_a_branch_forgets_too(run: Path) -> None:
    new = resume(str(run), number=8, updates=9, clear_replay=True, quiet=True)
    assert dict(saved(new.run, 9).segments) == {}
    assert len(saved(new.run, 9).tensors["replay"]["tail"]) < len(saved(run, 12).segments) * 32


def test_a_run_without_a_replay_has_nothing_to_clear(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = trained(tmp_path, updates=1)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match=r"clear_replay: checkpoint 1 of .* holds no replay"):
        resume(str(agent.run), updates=2, clear_replay=True, quiet=True)
    assert main(["resume", str(agent.run), "--updates", "2", "--clear-replay"]) == 2
    assert "resume without this option" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_the_last_resort_has_its_segments_and_can_be_moved(
    finished: sparring.Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = checkpoints.write

    def full(folder: Path, checkpoint: Any) -> Path:
        if checkpoint.number >= 3 and folder.name == "checkpoints":
            raise checkpoints.CheckpointError("no space left; free 5 MB")
        return honest(folder, checkpoint)

    other = tmp_path / "other"
    other.mkdir()
    with monkeypatch.context() as patch, pytest.warns(SparringWarning) as told:
        patch.setattr(checkpoints, "write", full)
        patch.setattr(tempfile, "tempdir", str(other))
        agent = remembering(tmp_path / "runs", updates=7)
    assert f"move it to {agent.run / 'checkpoints'}" in str(told[-1].message)
    assert agent.elsewhere is not None
    shutil.move(agent.elsewhere, agent.run / "checkpoints")
    shutil.rmtree(other)
    again = resume(str(agent.run), updates=12, quiet=True)
    assert_same(saved(finished.run, 12), saved(again.run, 12))
    assert files(again.run) == named(again.run)


def test_a_disk_that_fills_up_loses_nothing_that_is_remembered(
    finished: sparring.Agent, small_disk: Path
) -> None:
    def callback(watched: Any) -> None:
        if watched.status.update == 3:
            fill(small_disk)
        if watched.status.update == 6:
            (small_disk / "filler").unlink()

    wanted = ALGO | {"opponents": ("random=1",), "updates": 12, "keep": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SparringWarning)
        agent = train_with(
            settings(small_disk / "runs", **wanted), quiet=True, callbacks=Callbacks(callback)
        )
    assert not agent.unsaved
    assert_same(saved(finished.run, 12), saved(agent.run, 12))
    assert files(agent.run) == named(agent.run)
