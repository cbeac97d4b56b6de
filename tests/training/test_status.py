"""What a member tells about itself while it trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from sparring.games.rules import Rules
from sparring.learn.learner import Report, Snapshot
from sparring.training.member import Member
from sparring.training.planning.settings import merged, with_preset
from sparring.training.planning.training import run_plan
from sparring.training.train import new_run


def make_member(tmp_path: Path) -> Member:
    changes: dict[str, Any] = {"runs": str(tmp_path), "tensorboard": False}
    config = merged(with_preset("tic_tac_toe"), changes, "test")
    return Member(run_plan(config), new_run(config), Rules("tic_tac_toe"))


def test_updates_evaluations_and_saves_can_be_seen(tmp_path: Path) -> None:
    member = make_member(tmp_path)
    status = member.status
    for update, score in enumerate((0.25, 0.5), start=1):
        stats = {"charts/score": score, "charts/length": 7.5, "charts/cpu_share": 1.5}
        report = Report(stats, decisions=1000 * update, samples=900 * update)
        phases = {"stepping": 0.25, "other": 0.25}
        member.record(report, update=update, seconds=float(update), took=0.5, phases=phases)
    assert (status.score, status.length, status.cpu_cores) == (0.5, 7.5, 1.5)
    assert status.history["score"].values() == [0.25, 0.5]
    assert status.phases == {"stepping": 0.5, "other": 0.5}

    found = {"win": 0.7, "low": 0.6, "high": 0.8, "parity": 0.5, "score": 0.4}
    member.add_evaluation(2, {"results": dict.fromkeys(member.opponents, found)})
    assert (status.evaluated, status.best) == (2, 2)
    assert all(status.history[f"eval/{name}"].values() == [0.7] for name in member.opponents)

    assert status.saved == -1
    meta = {"update": 2, "decisions": 2000, "samples": 1800, "opponent_rows": 0}
    member.save(Snapshot({"net": {"weight": torch.zeros(1)}}, {}, meta))
    member.wait_for_save()
    assert (status.saved, status.saved_s) == (2, 2.0)
    member.close()
