"""The first strength of a run comes soon: a small evaluation before the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sparring.cli import find, loading_early
from sparring.games.rules import Rules
from sparring.learn.learner import Snapshot
from sparring.training import evaluate
from sparring.training.member import Member
from sparring.training.planning.settings import merged, with_preset
from sparring.training.planning.training import run_plan
from sparring.training.records.metrics import read
from sparring.training.train import new_run

FOUND = {"win": 0.1, "low": 0.0, "high": 0.2, "parity": 0.25, "score": 3.0}


def member_of(tmp_path: Path, **wanted: Any) -> Member:
    """A run of Skull King with one checkpoint, whose evaluation is wanted."""
    changes = {"runs": str(tmp_path), "tensorboard": False, "eval": {"patience": 1, **wanted}}
    config = merged(with_preset("skull_king"), changes, "test")
    member = Member(run_plan(config), new_run(config), Rules("skull_king"))
    want(member, 1)
    return member


def want(member: Member, update: int) -> None:
    member.status.update = update
    meta = {"update": update, "decisions": 10 * update, "samples": 9, "opponent_rows": 0}
    member.want_evaluation()
    member.save(Snapshot({"net": {"weight": torch.zeros(1)}}, {}, meta))
    member.wait_for_save()


def test_the_first_evaluation_is_small_urgent_and_against_the_best_bot(tmp_path: Path) -> None:
    member = member_of(tmp_path)
    asked = member.request(soon=True)
    assert asked is not None
    assert (asked["opponents"], asked["rivals"], asked["games"]) == (["captain"], [], 128)
    assert asked["urgent"]
    assert member.add_evaluation(1, {"results": {"captain": FOUND}}) is None
    assert member.status.wins == {"captain": FOUND}
    assert member.status.evaluated == 1
    assert (member.best["update"], member.evaluations_since_best) == (
        -1,
        0,
    )  # too few games to judge by
    want(member, 2)
    asked = member.request(soon=True)
    assert asked is not None
    assert (asked["opponents"], asked["games"]) == (["rule_hard", "captain"], 1024)
    assert "urgent" not in asked
    member.add_evaluation(2, {"results": dict.fromkeys(("rule_hard", "captain"), FOUND)})
    assert member.best["update"] == 2
    member.close()
    curves = read(member.run.path)
    assert curves["eval/captain/win"][0].tolist() == [1, 2]
    assert curves["eval/rule_hard/win"][0].tolist() == [2]


def test_a_look_at_the_last_update_does_not_stand_for_its_evaluation(tmp_path: Path) -> None:
    member = member_of(tmp_path)
    member.request(soon=True)
    member.add_evaluation(1, {"results": {"captain": FOUND}})
    member.want_evaluation()
    asked = member.request()
    assert asked is not None
    assert asked["games"] == 1024
    member.close()


def test_runs_that_repeat_and_the_last_evaluation_have_no_small_one(tmp_path: Path) -> None:
    for number, (wanted, soon) in enumerate((({"every_decisions": 100}, True), ({}, False))):
        member = member_of(tmp_path / str(number), **wanted)
        asked = member.request(soon=soon)
        assert asked is not None
        assert asked["games"] == 1024
        member.close()


def test_the_age_of_what_was_measured_goes_on_after_a_resume(tmp_path: Path) -> None:
    member = member_of(tmp_path)
    member.request(soon=True)
    member.add_evaluation(1, {"results": {"captain": FOUND}})
    meta = {"update": 3, "decisions": 30, "samples": 9, "opponent_rows": 0}
    assert member.meta(Snapshot({}, {}, meta))["evaluated"] == 1
    member.close()


@pytest.mark.parametrize("words", ["train --eval.off", "train x --dry-run", "games"])
def test_nobody_loads_early_who_has_nothing_to_evaluate(words: str) -> None:
    command, rest = find(words.split())
    with loading_early(command, rest):
        assert not evaluate._early


@pytest.mark.parametrize(
    ("bots", "rival", "best"),
    [
        ((0.97, 0.99), (0.6, 0.7), 2),  # the bots cannot tell them apart, the match can
        ((0.97, 0.99), (0.45, 0.6), 1),  # nor can the match
        ((0.80, 0.84), (0.6, 0.7), 1),  # beats the best, and has become weaker against bots
    ],
)
def test_who_beats_the_best_and_is_no_weaker_against_bots_takes_its_place(
    tmp_path: Path, bots: tuple[float, float], rival: tuple[float, float], best: int
) -> None:
    def match(low: float, high: float) -> dict[str, float]:
        return {**FOUND, "win": (low + high) / 2, "low": low, "high": high}

    member = member_of(tmp_path)
    member.rules = Rules("connect_four")
    member.opponents = ["ab4"]
    member.add_evaluation(1, {"results": {"ab4": match(0.975, 0.995)}})
    want(member, 2)
    asked = member.request()
    assert asked is not None
    (before,) = asked["rivals"]
    member.add_evaluation(2, {"results": {"ab4": match(*bots), before: match(*rival)}})
    assert member.best["update"] == best
