"""Full disks and divergence: training continues, and what was learned is kept."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from sparring.cli import main
from sparring.errors import SparringWarning
from sparring.learn.collect import Collector
from sparring.learn.learner import DivergedError
from sparring.store import checkpoint as checkpoints
from sparring.store.policies import load_policy
from sparring.training.records.metrics import read
from sparring.training.train import resume, train_with
from training.run_helpers import WORDS, events, settings, trained

PROGRAM = Path(sys.executable).parent / "sparring"


def test_a_full_disk_at_the_end_saves_elsewhere_and_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = checkpoints.write

    def full(folder: Path, checkpoint: Any) -> Path:
        if checkpoint.number >= 3 and folder.name == "checkpoints":
            raise checkpoints.CheckpointError("no space left; free 5 MB")
        return honest(folder, checkpoint)

    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr(checkpoints, "write", full)
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    with pytest.warns(SparringWarning) as told:
        agent = trained(tmp_path / "runs", updates=5)
    assert agent.elsewhere is not None
    assert agent.elsewhere.is_relative_to(other)
    assert "it was saved in" in str(told[-1].message)
    assert agent.evaluate("random", games=16)["random"].games == 16
    saved = load_policy(agent.elsewhere)
    assert saved.meta["update"] == 5
    for name, tensor in saved.net.state_dict().items():
        assert torch.equal(tensor, agent.policy.net.state_dict()[name])
    shutil.move(agent.elsewhere, agent.run / "checkpoints" / agent.elsewhere.name)
    monkeypatch.setattr(checkpoints, "write", honest)
    assert resume(str(agent.run), updates=6, quiet=True).policy.meta["update"] == 6


def test_a_last_network_that_nobody_takes_is_measured_and_not_called_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = checkpoints.write

    def full(folder: Path, checkpoint: Any) -> Path:
        if checkpoint.number >= 3:
            raise checkpoints.CheckpointError("no space left; free 5 MB")
        return honest(folder, checkpoint)

    monkeypatch.setattr(checkpoints, "write", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.warns(SparringWarning) as told:
        agent = trained(tmp_path / "runs", updates=5)
    assert "it is lost when this program ends" in str(told[-1].message)
    assert (agent.unsaved, agent.elsewhere) == (True, None)
    assert agent.policy.name == "update 5"  # and not the older one that lies on the disk


def fill(disk: Path, leave: int = 0) -> None:
    """Take all the space of a disk but some bytes."""
    with (disk / "filler").open("ab") as out:
        try:
            while True:
                os.write(out.fileno(), bytes(4096))
        except OSError as wrong:
            assert wrong.errno == errno.ENOSPC
        out.flush()
    if leave:
        os.truncate(disk / "filler", max((disk / "filler").stat().st_size - leave, 0))


def train_on_a_disk_that_fills_up(disk: Path, leave: int, moment: int) -> Path:
    """Train while somebody else takes the space; the last network must be somewhere, whole."""

    def callback(watched: Any) -> None:
        if watched.status.update == moment:
            fill(disk, leave)

    config = settings(disk / "runs", updates=8, csv=True, episodes_csv=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SparringWarning)  # little space may be enough
        agent = train_with(
            config, quiet=True, callbacks=sparring.training.callbacks.Callbacks(callback)
        )
    assert agent.evaluate("random", games=16)["random"].games == 16
    newest = agent.elsewhere or checkpoints.newest_valid(agent.run / "checkpoints")
    assert newest is not None
    assert load_policy(newest).meta["update"] == 8
    if agent.elsewhere:
        shutil.rmtree(agent.elsewhere.parent)
    return agent.run


@pytest.mark.parametrize("leave", [0, 8192])
def test_a_disk_that_fills_up_loses_nothing(small_disk: Path, leave: int) -> None:
    run = train_on_a_disk_that_fills_up(small_disk, leave, moment=3)
    (small_disk / "filler").unlink()
    assert resume(str(run), updates=9, quiet=True).policy.meta["update"] == 9


@pytest.mark.slow
def test_twenty_full_disks(small_disk: Path) -> None:
    rng = random.Random(0)
    for _ in range(20):
        leave = rng.choice([0, 4096, 8192, 50_000, 150_000])
        run = train_on_a_disk_that_fills_up(small_disk, leave, moment=rng.randrange(1, 8))
        (small_disk / "filler").unlink()
        load_policy(run) if checkpoints.checkpoint_numbers(run / "checkpoints") else None
        shutil.rmtree(small_disk / "runs")


@pytest.mark.slow
def test_the_command_says_what_a_full_disk_kept(small_disk: Path) -> None:
    words = [str(PROGRAM), "train", "tic_tac_toe", "--runs", str(small_disk), "--updates", "3"]
    words += [*WORDS, "--eval.off", "--eval.final-games", "16"]
    fill(small_disk, leave=8192)
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "Traceback" not in ended.stderr
    where = {2: "check the space on its disk", 3: "it was saved in"}  # nothing begun, or all kept
    assert where[ended.returncode] in ended.stderr


# Divergence


def poison(monkeypatch: pytest.MonkeyPatch, *, times: int) -> None:
    honest, left = Collector.collect, [times]

    def poisoned(self: Collector, number: int) -> dict[str, float]:
        stats = honest(self, number)
        if number == 5 and left[0]:
            left[0] -= 1
            self.rollout.columns["log_prob"][:] = np.nan
        return stats

    monkeypatch.setattr(Collector, "collect", poisoned)


def test_a_divergence_is_rolled_back_once_with_a_lower_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, times=1)
    agent = trained(tmp_path, updates=8)
    assert agent.ended == "done"
    (lowered,) = [e for e in events(agent.run) if e["event"].startswith("diverged: ")]
    assert (lowered["lr"], lowered["from"], lowered["update"]) == ("0.0001", 5, 5)
    assert read(agent.run)["learning/lr"][2].tolist() == pytest.approx([1e-3] * 5 + [1e-4] * 3)
    again = resume(str(agent.run), updates=9, quiet=True)
    assert again.policy.meta["update"] == 9
    assert read(agent.run)["learning/lr"][2][-1] == pytest.approx(1e-4)  # as it was lowered
    assert float(sparring.training.records.run.Run.open(agent.run).config["ppo"]["lr"]) == 1e-3
    earlier = resume(str(agent.run), number=7, updates=8, quiet=True)
    assert earlier.policy.meta["update"] == 8


@pytest.mark.slow
def test_a_second_divergence_ends_the_run_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    poison(monkeypatch, times=2)
    with pytest.raises(
        DivergedError, match=r"sparring train --config .*config\.toml --init .* --ppo\.lr"
    ) as told:
        trained(tmp_path, updates=8, name="bad")
    assert "with a learning rate of 0.001, and again at a tenth; " in str(told.value), "as set"
    (run,) = tmp_path.iterdir()
    newest = checkpoints.newest_valid(run / "checkpoints")
    assert newest is not None
    assert newest.name == "00000005"
    assert all(torch.isfinite(t).all() for t in checkpoints.load(newest).tensors["net"].values())
    assert events(run)[-1]["event"] == "diverged"
    words = str(told.value).partition("sparring train ")[2].split()  # as it is printed
    assert main(["train", *words, "--eval.final-games", "16", "--json"]) == 0
    new = Path(json.loads(capsys.readouterr().out)["run"])
    assert sparring.training.records.run.Run.open(new).config["init"] == str(newest)


def test_a_divergence_before_any_checkpoint_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trained(tmp_path, updates=4)
    poison(monkeypatch, times=1)
    config = settings(tmp_path, updates=8, checkpoint_every_s=1e9, episodes_csv=True)
    agent = train_with(replace(config, init=str(first.run), seed=5), quiet=True)
    assert read(agent.run)["learning/lr"][2].tolist() == pytest.approx([1e-4] * 8)
    assert [e["from"] for e in events(agent.run) if e["event"].startswith("diverged: ")] == [0]
    lines = (agent.run / "episodes.csv").read_text().splitlines()[1:]
    assert len(lines) == read(agent.run)["charts/episodes"][2][-1]  # none from before
    # At the lower rate it is still near the weights that it was to begin with.
    mine, theirs = agent.policy.net.state_dict(), first.policy.net.state_dict()
    name = next(name for name in mine if name.endswith("weight"))
    assert torch.allclose(mine[name], theirs[name], atol=0.02)
