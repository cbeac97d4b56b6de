"""A strength is one figure per game, wherever it is shown, and a state is what is true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands.run_helpers import make_run
from sparring.cli import main
from sparring.commands.runs import strength_text
from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.training.agent import measure
from sparring.training.records.metrics import MetricsWriter
from sparring.training.records.overview import Overview, done_line, measured_line
from sparring.training.records.strength import gained_per, strength_in, strengths_over
from sparring.training.train import resume, train_with, with_budget
from sparring.web.run_summaries import RunSummary
from training.run_helpers import settings


def finished(run: Path, results: dict[str, Any], why: str = "done", **more: Any) -> Path:
    """Let a run have ended and been measured."""
    ended = {"update": 10, "event": "ended", "why": why}
    (run / "events.json").write_text(json.dumps([ended]))
    text = {"ended": why, "results": results, **more}
    (run / "results.json").write_text(json.dumps(text))
    return run


def test_the_same_agent_has_the_same_strength_whoever_else_it_met(tmp_path: Path) -> None:
    captain = {"win": 0.03, "low": 0.02, "high": 0.04, "score": -80.0}
    easy = {"win": 0.9, "low": 0.8, "high": 1.0, "score": 90.0}
    few = make_run(tmp_path, "few", {10: {"captain": 0.5}}, game="skull_king")
    finished(few, {"captain": captain})
    many = make_run(tmp_path, "many", {}, game="skull_king")
    finished(many, {"random": easy, "rule_hard": easy, "captain": captain})
    for run in (few, many):
        told = Overview(run).plain()
        assert (told["strength"], told["measure"]) == (0.03, "captain")
        assert strength_text(told) == "captain 0.030"
        shown = RunSummary(run).plain()
        assert (shown["strength"], shown["low"], shown["high"]) == (0.03, 0.02, 0.04)
        assert (shown["measure"], shown["against"]) == ("win share", "captain")


def test_a_return_is_a_return_without_any_evaluation_on_the_way(tmp_path: Path) -> None:
    run = make_run(tmp_path, "own", {}, game="my_env:make")
    alone = {"win": 1.0, "low": 1.0, "high": 1.0, "score": -14.018, "parity": 1.0}
    finished(run, {"alone": {**alone, "score_low": -15.32, "score_high": -12.72}})
    assert strength_text(Overview(run).plain()) == "return -14.02"
    shown = RunSummary(run).plain()
    assert (shown["measure"], shown["against"]) == ("score", "return")
    assert (shown["strength"], shown["low"], shown["high"]) == (-14.018, -15.32, -12.72)


def test_before_the_end_the_newest_evaluation_tells(tmp_path: Path) -> None:
    run = make_run(tmp_path, "going", {5: {"careful": 0.9}, 10: {"careful": 0.4}}, updates=12)
    assert strength_text(Overview(run).plain()) == "careful 0.400"
    assert RunSummary(run).plain()["evaluations"] == {"update": [5, 10], "strength": [0.9, 0.4]}
    with MetricsWriter(run, tensorboard=False) as out:
        out.add(11, {"eval/careful/win": float("nan")}, seconds=1e3)
    assert strength_text(Overview(run).plain()) == "careful 0.400"


@pytest.mark.parametrize("odd", [{}, {"careful": 3}, {"careful": {"win": "x"}}, {"careful": {}}])
def test_odd_results_are_no_strength(odd: dict[str, Any]) -> None:
    assert strength_in(odd, "careful") is None
    assert strengths_over({}, "careful") == {}


def test_a_minute_says_nothing_about_an_hour() -> None:
    assert gained_per([0.0, 0.5], [1.0, 3.0], 0.1) == 4.0
    assert gained_per([0.0, 0.05], [1.0, 3.0], 0.1) is None
    assert gained_per([0.0], [1.0], 0.1) is None


def test_a_run_that_was_not_measured_as_it_should_is_not_done(tmp_path: Path) -> None:
    run = make_run(tmp_path, "run", {})
    found = {"careful": {"win": 0.5, "low": 0.4, "high": 0.6, "score": 0.0}}
    assert Overview(finished(run, found)).state == "done"
    finished(run, {}, not_measured="it was interrupted")
    assert Overview(run).state == "unmeasured"
    assert RunSummary(run).plain()["not_measured"] == "it was interrupted"
    (run / "results.json").unlink()
    assert Overview(run).state == "done"  # trained by a program, which measures or does not
    (run / "events.json").unlink()
    assert Overview(run).state == "unmeasured"  # killed in its last evaluation


def test_a_run_that_is_done_says_so_and_how_to_go_on(tmp_path: Path) -> None:
    found = {"careful": {"win": 0.5, "low": 0.4, "high": 0.6, "score": 0.0}}
    timed = make_run(tmp_path, "timed", {}, minutes=0.75, seconds_per_update=4.52)
    text = (timed / "config.toml").read_text()
    (timed / "config.toml").write_text(text.replace("updates = 10\n", "updates = 0\n"))
    finished(timed, found)
    assert done_line(Overview(timed)) == (
        f"done: 0.75 of 0.75 minutes; give more: sparring resume {timed} --minutes 1.5"
    )
    counted = finished(make_run(tmp_path, "counted", {}), found, why="early")
    assert done_line(Overview(counted)) == (
        "done: 10 of 10 updates (no progress for as many evaluations as eval.patience says); "
        f"give more: sparring resume {counted} --updates 20"
    )


def test_a_table_says_whose_strength_it_measures(tmp_path: Path) -> None:
    run = make_run(tmp_path, "run", {})
    assert measured_line(Overview(run), 10, 16_384) == (
        "measured: update 10 of 10 (the last), 16,384 decisions"
    )
    (run / "best.json").write_text('{"checkpoint": 1}')
    assert measured_line(Overview(run), 1, 1000) == (
        "measured: update 1 of 10 (best so far), 1,000 decisions"
    )


def test_a_run_killed_while_it_is_measured_is_measured_by_resume_and_then_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = settings(tmp_path, updates=2, eval={"off": True, "final_games": 16})
    agent = train_with(config, quiet=True)

    def die(opponent: str) -> None:
        raise KeyboardInterrupt(opponent)

    with pytest.raises(KeyboardInterrupt):
        measure(agent, config.eval, die)
    assert Overview(agent.run).state == "unmeasured"
    assert agent.results == {}
    assert main(["resume", str(agent.run)]) == 0
    shown = capsys.readouterr().out
    assert "measured: update 2 of 2 (the last), " in shown
    assert "strength: careful 0." in shown
    kept = (agent.run / "results.json").read_bytes()
    assert json.loads(kept)["strength"]["measure"] == "careful"
    assert Overview(agent.run).state == "done"
    assert main(["resume", str(agent.run)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("done: 2 of 2 updates; give more: sparring resume ")
    assert shown.splitlines()[0].endswith(" --updates 4")
    assert (agent.run / "results.json").read_bytes() == kept
    assert main(["resume", str(agent.run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == json.loads(kept)["results"]
    assert resume(agent.run, quiet=True).ended == "done"


def test_a_budget_that_is_used_up_is_refused_in_round_numbers() -> None:
    meta = {"seconds": 31.764934374, "update": 5}
    with pytest.raises(ConfigError, match=r"minutes 0\.1: the run has 0\.53 behind it already"):
        with_budget(TrainConfig(), meta, {"minutes": 0.1})
    with pytest.raises(ConfigError, match="decisions 1,000: the run has 16,384 behind it already"):
        with_budget(TrainConfig(), {**meta, "decisions": 16384}, {"decisions": 1000})
