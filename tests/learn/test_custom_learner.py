"""A learner of somebody else's gets runs, checkpoints, evaluation and exact resume by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from learn import reinforce
from sparring.cli import main
from sparring.learn.learner import Learner, SupportsDryRun
from sparring.store import checkpoint as checkpoints
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import merged, with_preset
from sparring.training.records.metrics import read
from sparring.training.train import resume, train
from training.run_helpers import evaluator_at_hand

ALGO = "learn.reinforce:make"
QUICK: dict[str, Any] = {
    "algo": ALGO,
    "algo_set": ("lr=2",),
    "opponents": ("random=1",),
    "collect": {"games": 64, "steps": 24},
    "net": {"hidden": (32, 32)},
    "eval": {"off": True},
    "tensorboard": False,
    "threads": 1,
}


def test_the_toy_is_a_toy() -> None:
    assert len(Path(reinforce.__file__).read_text().splitlines()) < 120


def test_it_learns_and_is_measured(tmp_path: Path) -> None:
    watched = {"off": False, "every_s": 0.0, "games": 128, "against": ("random",)}
    with evaluator_at_hand():
        whole = train(
            "tic_tac_toe",
            updates=60,
            quiet=True,
            runs=str(tmp_path / "a"),
            **QUICK | {"eval": watched},
        )
    curves = read(whole.run)
    assert len(curves["eval/random/win"][2]) > 1
    score = curves["charts/score"][2]
    assert score[-10:].mean() > score[:10].mean() + 0.2
    assert "learn_reinforce_make" in whole.run.name
    assert 'algo = "learn.reinforce:make"' in (whole.run / "config.toml").read_text()
    # A policy without a value plays, is saved and loaded; asked for a value it says so.
    loaded = sparring.load(whole.save(tmp_path / "policy"))
    assert list(loaded.net.heads) == ["policy"]
    with pytest.raises(sparring.ConfigError, match="no value head"):
        loaded.value(np.zeros((1, loaded.rules.obs_bytes), np.uint8))


def test_it_resumes_to_the_bit(tmp_path: Path) -> None:
    whole = train("tic_tac_toe", updates=8, quiet=True, runs=str(tmp_path / "a"), **QUICK)
    halves = train("tic_tac_toe", updates=4, quiet=True, runs=str(tmp_path / "b"), **QUICK)
    again = resume(str(halves.run), updates=8, quiet=True)
    one, two = (
        checkpoints.load(run / "checkpoints" / "00000008") for run in (whole.run, again.run)
    )
    assert one.blobs == two.blobs
    for group, tensors in one.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, two.tensors[group][name]), (group, name)


def test_it_is_a_learner_by_what_it_can_do() -> None:
    config = merged(with_preset("tic_tac_toe", algo=ALGO), QUICK, "test")
    learner: Learner = make_learner(config, resolve([config]))
    assert not isinstance(learner, SupportsDryRun)
    frozen = learner.policy()
    before = [p.clone() for p in frozen.net.parameters()]
    learner.iterate(0.0)
    assert all(torch.equal(a, b) for a, b in zip(before, frozen.net.parameters(), strict=True))


def test_the_command_line_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"train tic_tac_toe --algo {ALGO} --algo-set lr=0.1 --updates 3 --runs {tmp_path}"
    words += " --collect.games 8 --collect.steps 16 --net.hidden 8 --eval.off"
    words += " --eval.final-games 64 --json"
    assert main(words.split()) == 0
    shown = json.loads(capsys.readouterr().out)
    assert set(shown["results"]) == {"random", "careful"}
    assert main(["eval", shown["run"], "--against", "random", "--games", "64"]) == 0


@pytest.mark.parametrize(
    ("algo", "hint"),
    [
        ("pp", "did you mean 'ppo'"),
        ("no.such.module:make", "no module called"),
        ("learn.reinforce:made", "has no 'made'"),
        ("learn.reinforce:", "neither module:factory"),
        ("learn.reinforce:POLICY", "is not callable"),
    ],
)
def test_a_wrong_name_leaves_nothing_behind(
    algo: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "tic_tac_toe", "--algo", algo, "--updates", "1"]
    assert main([*words, "--runs", str(tmp_path / "runs")]) == 2
    assert hint in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
