"""Runs that remember: killed in the middle they go on to the bit, replay and all."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from sparring.store import checkpoint as checkpoints
from sparring.training.planning.settings import merged, with_preset
from sparring.training.train import resume, train_with
from training.test_loop import PROGRAM, assert_same_run, final, wait_for_checkpoint

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "dqn": ("tic_tac_toe", {"dqn": {"lr": 1e-3, "epsilon": 0.2}, "replay": {"prioritized": True}}),
    "sac": ("laser_hockey", {"sac": {"lr": 1e-3}}),
}
SMALL: dict[str, Any] = {
    "net": {"hidden": (32, 32)},
    "collect": {"games": 8, "steps": 8},
    "replay": {"capacity": 3000, "batch": 64, "warmup": 1500, "ratio": 2.0, "n_step": 2},
    "eval": {"off": True, "final_games": 2},
    **{"tensorboard": False, "threads": 1, "device": "cpu", "updates": 10},
    **{"checkpoint_every_s": 0.0, "keep": 100},
}


@pytest.mark.slow
@pytest.mark.parametrize("algo", RUNS)
def test_a_killed_run_goes_on_with_what_it_remembered(tmp_path: Path, algo: str) -> None:
    game, more = RUNS[algo]
    base = merged(with_preset(game, algo=algo), {"runs": str(tmp_path / "whole"), "algo": algo}, "")
    # Correction of priorities by decisions: the whole length of a run does not matter then.
    fixed = {"replay": {"priority_correction": 0.5}} if algo == "dqn" else {}
    config = base
    for changes in (SMALL, more, fixed):
        config = merged(config, changes, "test")
    whole = train_with(config, quiet=True)
    words = [str(PROGRAM), "train", game, "--config", str(whole.run / "config.toml")]
    words += ["--runs", str(tmp_path / "cut"), "--updates", "100000"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run = wait_for_checkpoint(tmp_path / "cut", 5, process)
    process.kill()
    process.communicate()
    again = resume(str(run), number=5, updates=10, quiet=True)
    assert_same_run(whole.run, again.run, 10)
    one, two = final(whole.run, 10), final(again.run, 10)
    assert one.meta["steps"] == two.meta["steps"] > 0
    assert one.segments.keys() == two.segments.keys()
    for name, read in one.segments.items():
        mine, theirs = read(), two.segments[name]()
        assert all(torch.equal(mine[column], theirs[column]) for column in mine)
    assert checkpoints.newest_valid(again.run / "checkpoints") is not None
