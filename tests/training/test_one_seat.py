"""Runs of a game with one seat: nobody to beat, so the score says which checkpoint is best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparring.cli import main
from sparring.games.rules import Rules
from sparring.league.arena import ALONE, default_opponents, guaranteed_share, strength_of
from sparring.training.display import line, shown_strength
from sparring.training.member import Member
from sparring.training.planning.settings import merged, with_preset
from sparring.training.planning.training import run_plan
from sparring.training.records.metrics import read
from sparring.training.train import train

QUICK: dict[str, Any] = {
    "net": {"hidden": (16, 16)},
    "collect": {"games": 16, "steps": 32},
    "ppo": {"epochs": 1, "minibatch": 256},
    "tensorboard": False,
}


@pytest.mark.slow
def test_a_run_is_measured_by_its_score(tmp_path: Path) -> None:
    agent = train(
        "cage2",
        updates=8,
        quiet=True,
        runs=str(tmp_path),
        threads=1,
        **{**QUICK, "eval": {"every_s": 0.0, "games": 16}},
    )
    results = agent.evaluate(games=16)
    assert list(results) == [ALONE]
    assert results[ALONE].first.score < 0
    curves = read(agent.run)
    assert (curves["eval/strength"][2] == curves[f"eval/{ALONE}/score"][2]).all()
    assert not any(name.endswith("/win") for name in curves)
    best = json.loads((agent.run / "best.json").read_text())["checkpoint"]
    strengths = curves["eval/strength"]
    assert strengths[2].max() == strengths[2][list(strengths[0]).index(best)]


def test_the_command_reports_the_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "cage2", "--updates", "2", "--runs", str(tmp_path), "--threads", "1"]
    words += ["--net.hidden", "16", "--collect.games", "16", "--collect.steps", "8"]
    words += ["--ppo.minibatch", "128", "--eval.off", "--eval.final-games", "8", "--json"]
    assert main(words) == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown["results"]) == [ALONE]
    run = shown["run"]
    assert main(["eval", run, "--games", "8", "--threads", "1"]) == 0
    assert "score" in capsys.readouterr().out
    assert main(["eval", run, "--games", "8", "--against", "vreact"]) == 2
    assert "one seat" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["cage2", "--eval.against", "sleep"], "cage2 has one seat and no opponents; leave it out"),
        (["tic_tac_toe", "--eval.against", "carefull"], "did you mean 'careful'?"),
        (["tic_tac_toe", "--eval.against", "random", "random"], "give each once"),
    ],
)
def test_who_cannot_be_met_is_refused_before_the_run(
    words: list[str], hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *words, "--updates", "1", "--runs", str(tmp_path / "runs")]) == 2
    assert hint in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_low_score_may_still_be_the_best_so_far(tmp_path: Path) -> None:
    from sparring.training.train import new_run

    config = merged(with_preset("cage2"), {**QUICK, "runs": str(tmp_path)}, "test")
    rules = Rules("cage2")
    member = Member(run_plan(config), new_run(config), rules)
    found = {"score": -900.0, "score_low": -910.0, "score_high": -890.0, "parity": 1.0}
    for number, score in enumerate((-900.0, -950.0, -20.0)):
        member.add_evaluation(number, {"results": {ALONE: {**found, "win": 1.0, "score": score}}})
    assert member.best == {"update": 2, "strength": -20.0}
    assert "evaluated update 2: alone -20.0" in line(member.status)
    member.close()


def test_strength_is_the_score_alone_and_the_share_among_others() -> None:
    assert default_opponents(Rules("cage2")) == ()
    assert default_opponents(Rules("tic_tac_toe"), 1) == ("careful",)
    assert strength_of(Rules("cage2"), {ALONE: {"win": 1.0, "score": -3.0}}) == -3.0
    shares = {"a": {"win": 0.4, "low": 0.3, "score": 1}, "b": {"win": 0.3, "low": 0.2, "score": 2}}
    assert strength_of(Rules("tic_tac_toe"), shares) == pytest.approx(0.35)
    assert guaranteed_share(Rules("tic_tac_toe"), shares) == 0.2  # what is sure
    assert guaranteed_share(Rules("cage2"), {ALONE: {"score": -3.0, "score_low": -4.0}}) == -4.0
    assert shown_strength({"win": 0.5, "score": 1.0, "parity": 0.5}) == "0.500"
