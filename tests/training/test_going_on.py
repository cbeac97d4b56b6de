"""A run that goes on knows what was measured before; one that is measured is left alone."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from sparring import SparringError
from sparring.cli import main
from sparring.store import checkpoint as checkpoints
from sparring.training.agent import measure
from sparring.training.loop import Stop, Trainer
from sparring.training.member import Member
from sparring.training.records.overview import Overview
from sparring.training.records.run import Run
from sparring.training.train import new_run, resume, train_with
from training.run_helpers import events, settings, trainer_for

EVAL = {"off": False, "every_s": 1e9, "games": 16, "patience": 9}


def answer(member: Member, win: float) -> dict[str, Any]:
    found = {"win": win, "low": win, "high": win, "score": win, "games": 16}
    return {"results": dict.fromkeys(member.opponents, found)}


def trainer_of(tmp_path: Path, number: int = -1) -> Trainer:
    """A loop that begins, or goes on from a checkpoint of the run in this folder."""
    config = settings(tmp_path, updates=9, keep=9, eval=EVAL)
    if number < 0:
        return trainer_for(config, new_run(config))
    (run,) = map(Run.open, tmp_path.iterdir())
    saved = checkpoints.load(run.checkpoints / f"{number:08d}")
    return trainer_for(config, run, resume=saved)


def train_three(tmp_path: Path, *, killed: bool) -> Path:
    """Three updates, each saved; what evaluations say comes when all are."""
    trainer = trainer_of(tmp_path)
    (member,) = trainer.members
    for _ in range(3):
        trainer._update(time.perf_counter(), 0.0)
        member.waiting[trainer.status.update] = trainer.status.seconds
        trainer.save()
    trainer._save_last()
    for number, win in ((1, 0.2), (2, 0.6), (3, 0.4)):
        member.add_evaluation(number, answer(member, win))
    if not killed:
        trainer._await_last_evaluation(Stop())
    trainer._close()
    return member.run.path


def named(run: Path) -> Any:
    return json.loads((run / "best.json").read_text())["checkpoint"]


def test_what_evaluations_found_after_the_last_save_is_known_after_a_resume(
    tmp_path: Path,
) -> None:
    run = train_three(tmp_path, killed=False)
    before = events(run)
    trainer = trainer_of(tmp_path, 3)
    (member,) = trainer.members
    assert named(run) == member.status.best == 2
    assert events(run) == before
    assert (member.waiting, member.evaluations_since_best, member.evaluated) == ({}, 1, 3)
    assert (member.first["score"], member.status.evaluated) == (0.2, 3)
    trainer._request_evaluation()
    assert not member.waiting  # the last one was evaluated, too
    trainer._close()


def test_the_best_checkpoint_outlives_a_kill_and_what_is_measured_again(tmp_path: Path) -> None:
    run = train_three(tmp_path, killed=True)
    trainer = trainer_of(tmp_path, 3)
    (member,) = trainer.members
    assert named(run) == member.status.best == 2
    assert list(member.waiting) == [1, 2, 3]  # their events and targets are not saved
    for number, win, dry in ((1, 0.2, 1), (2, 0.6, 0), (3, 0.4, 1)):
        request = member.request()
        assert request and request["checkpoint"] not in request["rivals"]
        member.add_evaluation(number, answer(member, win))
        assert (named(run), member.status.best, member.evaluations_since_best) == (2, 2, dry)
    trainer._close()
    assert [e["checkpoint"] for e in events(run) if e["event"] == "best"] == [2]


def test_a_best_checkpoint_of_later_is_forgotten(tmp_path: Path) -> None:
    run = train_three(tmp_path, killed=True)
    trainer = trainer_of(tmp_path, 1)
    trainer._close()
    assert trainer.members[0].best["update"] == -1
    assert not (run / "best.json").exists()


def test_a_run_that_is_measured_is_running_for_everybody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = settings(tmp_path, updates=1, eval={"off": True, "final_games": 16})
    agent = train_with(config, quiet=True)
    met = []

    def look(opponent: str) -> None:
        met.append(opponent)
        assert Overview(agent.run).state == "running"
        with pytest.raises(SparringError, match="trained or measured by another process"):
            resume(agent.run, updates=9, quiet=True)
        assert main(["runs", "--remove", str(agent.run), "--yes"]) == 2
        assert "is being trained or measured; stop it first" in capsys.readouterr().err

    measure(agent, config.eval, look)
    assert met
    assert Overview(agent.run).state == "done"
