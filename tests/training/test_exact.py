"""Exact exploitability beside training: what is asked for, measured, written and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from sparring.config import EvaluationConfig, NetConfig
from sparring.draw.charts.curves import make_charts, make_common_charts
from sparring.errors import ConfigError, SparringWarning
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.proof.exploitability import exploitability
from sparring.store.policies import save_policy
from sparring.training import evaluate
from sparring.training.exact import SMALL_TREE, ExactMeter, exact_request
from sparring.training.member import Member
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import merged, with_preset
from sparring.training.planning.training import run_plan
from sparring.training.records.metrics import read
from sparring.training.train import new_run

FOUND = {"win": 0.5, "low": 0.4, "high": 0.6, "parity": 0.5, "score": 0.0, "pairs": [1, 0, 1]}


def saved(tmp_path: Path, game: str = "kuhn_poker") -> tuple[Policy, str]:
    torch.manual_seed(0)
    rules = Rules(game)
    policy = Policy(rules, make_net(rules, NetConfig(hidden=(8,))))
    return policy, str(save_policy(policy, tmp_path / game))


def test_an_evaluation_answers_what_the_library_says(tmp_path: Path) -> None:
    policy, folder = saved(tmp_path)
    request = {"id": 1, "checkpoint": folder, "opponents": ["nash"], "games": 4, "seed": 0}
    assert "exploitability" not in evaluate.answer(request)
    exact = exact_request(policy.rules, EvaluationConfig(), 10.0)
    found = evaluate.answer({**request, **exact})
    expected = exploitability(policy.rules, policy).exploitability
    assert found["exploitability"] == pytest.approx(expected, abs=1e-12)
    assert set(found["results"]) == {"nash"}


def test_auto_measures_small_games_in_a_share_of_the_time() -> None:
    kuhn, auto = Rules("kuhn_poker"), EvaluationConfig()
    assert exact_request(kuhn, auto, 50.0) == {"exact": {"positions": SMALL_TREE, "budget_s": 1.0}}
    assert exact_request(Rules("skull_king"), auto, 50.0) == {}
    assert exact_request(kuhn, EvaluationConfig(exploitability="off"), 50.0) == {}
    always = exact_request(kuhn, EvaluationConfig(exploitability="on"), 50.0)["exact"]
    assert "budget_s" not in always and always["positions"] > SMALL_TREE
    by_decisions = EvaluationConfig(every_decisions=1000)
    assert "budget_s" not in exact_request(kuhn, by_decisions, 50.0)["exact"], "it would not repeat"


def test_a_budget_that_is_used_up_is_waited_for(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    meter = ExactMeter()
    asked: dict[str, Any] = {"positions": SMALL_TREE, "budget_s": 0.0}
    assert "exploitability" in meter.measure({"checkpoint": folder, "exact": asked})
    assert meter.spent_s > 0
    assert meter.measure({"checkpoint": folder, "exact": asked}) == {}
    asked["budget_s"] = 100.0
    assert "exploitability" in meter.measure({"checkpoint": folder, "exact": asked})


def test_a_tree_that_is_too_large_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder = saved(tmp_path, "tic_tac_toe")
    meter = ExactMeter()
    asked = {"checkpoint": folder, "exact": {"positions": 1000}}
    first = meter.measure(asked)
    assert "too large for an exact answer" in first["not_exact"]
    monkeypatch.setattr("sparring.training.exact.Tree", None)
    assert meter.measure(asked) == first


def member_of(tmp_path: Path, **wanted: Any) -> Member:
    changes = {"runs": str(tmp_path), "tensorboard": False, "eval": wanted}
    config = merged(with_preset("kuhn_poker"), changes, "test")
    return Member(run_plan(config), new_run(config), Rules("kuhn_poker"))


def test_a_run_keeps_and_draws_its_curve(tmp_path: Path) -> None:
    member = member_of(tmp_path, exploitability="on")
    results = dict.fromkeys(member.opponents, FOUND)
    member.add_evaluation(1, {"results": results, "exploitability": 0.3})
    member.add_evaluation(2, {"results": results, "exploitability": 0.1})
    assert member.status.exploitability == 0.1
    with pytest.warns(SparringWarning, match="exploitability on: too large"):
        member.add_evaluation(3, {"results": results, "not_exact": "too large"})
    member.add_evaluation(4, {"results": results, "not_exact": "too large"})  # warned of once
    member.metrics.close()
    curves = read(member.run.path, "eval/*")
    updates, _, values = curves["eval/exploitability"]
    assert (updates.tolist(), values.tolist()) == ([1, 2], [0.3, 0.1])
    title = "Exploitability, exact"
    assert title in [chart.title for chart in make_charts(curves)]
    assert title in [chart.title for chart in make_common_charts({"a": curves, "b": curves})]


@pytest.mark.parametrize(
    ("game", "told"),
    [
        ("skull_king", "leaves something to chance that no flag 'deal' enumerates"),
        ("laser_hockey", "has continuous actions"),
    ],
)
def test_games_without_a_tree_are_refused_before_training(game: str, told: str) -> None:
    config = merged(with_preset(game), {"eval": {"exploitability": "on"}}, "test")
    with pytest.raises(ConfigError, match=f"eval.exploitability on: {game} {told}.*exploit"):
        resolve([config], played=False)


def test_the_best_checkpoint_is_the_one_that_is_exploited_least(tmp_path: Path) -> None:
    member = member_of(tmp_path, exploitability="on")
    for number, win, gain in [(1, 0.6, 0.3), (2, 0.5, 0.1), (3, 0.7, 0.2), (4, 0.9, None)]:
        results = {name: {**FOUND, "win": win} for name in member.opponents}
        found = {} if gain is None else {"exploitability": gain}
        member.add_evaluation(number, {"results": results, **found})
    assert member.best == {"update": 2, "strength": 0.5, "exploitability": 0.1}
    assert json.loads((member.run.path / "best.json").read_text())["checkpoint"] == 2
