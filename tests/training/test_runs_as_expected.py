"""What people expect of a run: budgets, names, seeds, first weights, callbacks, targets, tables."""

from __future__ import annotations

import csv
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from sparring.cli import main
from sparring.errors import ConfigError
from sparring.learn.rollout import Episodes
from sparring.store import checkpoint as checkpoints
from sparring.training.budget import Interval
from sparring.training.callbacks import CallbackRun, Callbacks
from sparring.training.member import Member
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.training import run_plan
from sparring.training.records.metrics import read
from sparring.training.records.overview import Overview, events_of
from sparring.training.records.run import Run
from sparring.training.status import Status
from sparring.training.train import new_run, resume, train, train_with
from training.run_helpers import TINY, WORDS, evaluator_at_hand, events, settings, trained


def same_weights(one: sparring.Agent, two: sparring.Agent) -> bool:
    mine, yours = one.policy.net.state_dict(), two.policy.net.state_dict()
    return all(torch.equal(mine[name], yours[name]) for name in mine)


# Budgets


@pytest.mark.parametrize(
    ("kind", "curve"), [("decisions", "charts/decisions"), ("episodes", "charts/episodes")]
)
def test_a_budget_ends_the_run_at_the_first_update_behind_it(
    tmp_path: Path, kind: str, curve: str
) -> None:
    agent = trained(tmp_path, **{kind: 500})
    values = read(agent.run)[curve][2]
    assert values[-1] >= 500 > values[-2]
    one, two = trained(tmp_path, **{kind: 500}), trained(tmp_path, **{kind: 500})
    assert same_weights(one, two)  # the clock has no say


def test_two_budgets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="updates 3 and decisions 500: a run has one budget"):
        trained(tmp_path, updates=3, decisions=500)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_budget_that_is_typed_goes_before_that_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('game = "tic_tac_toe"\nupdates = 30\n')
    words = ["train", "--config", str(file), "--runs", str(tmp_path / "runs"), *WORDS]
    words += ["--eval.off", "--eval.final-games", "16", "--json"]
    assert main([*words, "--decisions", "200"]) == 0
    run = Run.open(json.loads(capsys.readouterr().out)["run"])
    assert (run.config["updates"], run.config["decisions"]) == (0, 200)
    assert main([*words, "--updates", "2", "--minutes", "1"]) == 2
    assert "a run has one budget" in capsys.readouterr().err
    agent = train(config=str(file), decisions=200, quiet=True, **{**TINY, "runs": str(tmp_path)})
    assert Run.open(agent.run).config["updates"] == 0


def test_schedules_follow_the_budget(tmp_path: Path) -> None:
    agent = trained(tmp_path, decisions=1000, ppo={"lr": "0%:1e-3,100%:0"})
    lr = read(agent.run)["learning/lr"][2]
    decisions = read(agent.run)["charts/decisions"][2]
    expected = 1e-3 * (1 - np.concatenate([[0], decisions[:-1]]) / 1000)
    np.testing.assert_allclose(lr, expected, rtol=1e-6)


@pytest.mark.slow
def test_evaluations_by_decisions_repeat_exactly_after_a_resume(tmp_path: Path) -> None:
    plan = {"off": False, "every_decisions": 400, "games": 16, "final_games": 16}
    options: dict[str, Any] = {"eval": plan, "checkpoint_every_s": 1e9}
    options["checkpoint_every_decisions"] = 300
    one = trained(tmp_path / "one", decisions=2000, keep=100, **options)

    def told(run: Path) -> list[Any]:
        return [(e["update"], e["event"], e.get("checkpoint")) for e in events(run)]

    def saved(run: Path) -> list[str]:
        return sorted(path.name for path in (run / "checkpoints").iterdir() if path.is_dir())

    strength = read(one.run)["eval/strength"]
    assert len(strength[0]) >= 4
    first = int(saved(one.run)[0])  # nearly all of it is trained and measured once more
    again = resume(str(one.run), number=first, quiet=True)
    assert saved(again.run) == saved(one.run)
    assert told(again.run) == told(one.run)
    assert (again.run / "best.json").read_text() == (one.run / "best.json").read_text()
    np.testing.assert_array_equal(strength[2], read(again.run)["eval/strength"][2])


@pytest.mark.slow
def test_no_evaluation_by_decisions_is_left_out_on_a_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, wait = checkpoints.write, threading.Event()

    def slow(folder: Path, checkpoint: Any) -> Path:
        wait.wait(0.05)
        return honest(folder, checkpoint)

    monkeypatch.setattr(checkpoints, "write", slow)
    plan = {"off": False, "every_decisions": 100, "games": 16, "final_games": 16}
    agent = trained(tmp_path, updates=6, checkpoint_every_s=1e9, eval=plan)
    assert read(agent.run)["eval/strength"][0].tolist() == [1, 2, 3, 4, 5, 6]
    # Each answer takes effect when the next one is asked for, however long the disk took.
    effects = [(e["checkpoint"], e["update"]) for e in events(agent.run) if e["event"] == "best"]
    assert effects == [(number, min(number + 1, 6)) for number, _ in effects]


@pytest.mark.slow
def test_results_of_an_earlier_end_do_not_outlive_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "tic_tac_toe", "--runs", str(tmp_path), "--decisions", "300", *WORDS]
    assert main([*words, "--eval.off", "--eval.final-games", "16", "--json"]) == 0
    run = Path(json.loads(capsys.readouterr().out)["run"])
    assert (run / "results.json").exists()
    assert Overview(run).state == "done"
    agent = resume(str(run), decisions=600, quiet=True)
    assert not (run / "results.json").exists()
    assert agent.results == {}
    assert Overview(run).state == "done"


def test_a_name_that_is_taken_is_said_before_the_first_seed(tmp_path: Path) -> None:
    (tmp_path / "s-2").mkdir()
    words = ["train", "tic_tac_toe", "--runs", str(tmp_path), "--updates", "1", *WORDS]
    assert main([*words, "--device", "cpu", "--seeds", "2", "--name", "s"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["s-2"]


def test_something_is_due_by_seconds_or_by_decisions() -> None:
    status = Status("game", Path())
    clock = Interval(10, 0, status, now=100.0)
    assert [clock.due(status, now) for now in (105.0, 110.0)] == [False, True]
    assert clock.left_s(104.0) == 6.0
    count = Interval(0, 100, status, now=0.0)
    seen = []
    for status.decisions in (60, 120, 180, 240):
        seen.append(count.due(status, 0.0))
        if seen[-1]:
            count.done(status, 0.0)
    assert seen == [False, True, False, True]


# Names, seeds, first weights


def test_a_run_may_have_a_name(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=1, name="mine")
    assert agent.run == tmp_path / "mine"
    with pytest.raises(ConfigError, match="is there already"):
        trained(tmp_path, updates=1, name="mine")
    for name in ("../up", "a/b", "latest", " x"):
        with pytest.raises(ConfigError, match="cannot be a run's"):
            trained(tmp_path, updates=1, name=name)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_seeds_are_trained_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "tic_tac_toe", "--runs", str(tmp_path), "--updates", "2", *WORDS]
    words += ["--eval.off", "--eval.final-games", "16", "--device", "cpu"]
    assert main([*words, "--seeds", "2", "--name", "s", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [member["seed"] for member in told["members"]] == [0, 1]
    assert [Path(member["run"]).name for member in told["members"]] == ["s-1", "s-2"]
    for member in told["members"]:
        assert json.loads((Path(member["run"]) / "results.json").read_text())["results"]


def test_a_new_run_starts_from_trained_weights_with_other_settings(tmp_path: Path) -> None:
    first = trained(tmp_path, updates=4)
    new = trained(tmp_path, updates=1, init=str(first.run), ppo={"lr": 0.0})
    state = sparring.new_state("tic_tac_toe")
    obs, mask = state.observe_bytes(0)[None], np.ones((1, 9), np.uint8)
    before, after = first.policy, new.policy
    assert (before.probabilities(obs, mask) == after.probabilities(obs, mask)).all()
    np.testing.assert_allclose(before.value(obs), after.value(obs), rtol=1e-5)
    config = Run.open(new.run).config
    assert config["init"].endswith("checkpoints/00000004")
    assert new.policy.meta["update"] == 1
    assert events_of(new.run)[0]["summary"].startswith("kept all ")
    with pytest.raises(ConfigError, match="init: no policy 'nothing'"):
        trained(tmp_path, updates=1, init="nothing")
    with pytest.raises(ConfigError, match="plays tic_tac_toe, not shogi"):
        train("shogi", updates=1, init=str(first.run), runs=str(tmp_path), quiet=True)


def test_a_larger_network_goes_on_from_a_smaller_one(tmp_path: Path) -> None:
    first = trained(tmp_path, updates=4, net={"hidden": (8,)})
    new = trained(tmp_path, updates=1, init=str(first.run), net={"hidden": (16, 12)}, ppo={"lr": 0})
    state = sparring.new_state("tic_tac_toe")
    obs, mask = state.observe_bytes(0)[None], np.ones((1, 9), np.uint8)
    before, after = (agent.policy.probabilities(obs, mask) for agent in (first, new))
    np.testing.assert_allclose(before, after, rtol=1e-5)
    told = events_of(new.run)[0]
    assert (told["event"], told["update"]) == ("init", 0)
    assert "first.weight in part (8 of 16 columns)" in told["summary"]
    assert told["changed"]["towers.0.0.weight"]["how"] == "passes on"


# Callbacks and tables


def test_callbacks_look_log_and_stop(tmp_path: Path) -> None:
    updates: list[int] = []
    episodes: list[Episodes] = []
    evaluations: list[dict[str, Any]] = []

    def on_update(watched: CallbackRun) -> None:
        updates.append(watched.status.update)
        watched.log({"mine/double": 2.0 * watched.status.update})
        if watched.status.update == 4:
            watched.stop("enough")

    agent = train(
        "tic_tac_toe",
        updates=100,
        quiet=True,
        on_update=on_update,
        on_episode=lambda _, found: episodes.append(found),
        on_evaluation=lambda _, found: evaluations.append(found),
        **{**TINY, "runs": str(tmp_path), "eval": {"games": 16, "final_games": 16}},
    )
    assert agent.ended == "stopped"
    assert updates == [1, 2, 3, 4]
    assert read(agent.run)["mine/double"][2].tolist() == [2.0, 4.0, 6.0, 8.0]
    assert sum(map(len, episodes)) == read(agent.run)["charts/episodes"][2][-1]
    assert episodes[0].score.shape[1] == 2
    assert set(evaluations[-1]) == {"random", "careful"}
    assert [e["why"] for e in events(agent.run) if "callback" in e["event"]] == ["enough"]


def test_an_error_in_a_callback_leaves_the_run_saved(tmp_path: Path) -> None:
    def fails(watched: CallbackRun) -> None:
        if watched.status.update == 3:
            raise KeyError("mine")

    config = settings(tmp_path, updates=10, checkpoint_every_s=1e9)
    with pytest.raises(KeyError, match="mine"):
        train_with(config, quiet=True, callbacks=Callbacks(fails))
    (run,) = tmp_path.iterdir()
    assert resume(str(run), updates=5, quiet=True).policy.meta["update"] == 5


def test_every_finished_game_is_a_line(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=5, csv=True, episodes_csv=True)
    with (agent.run / "episodes.csv").open() as file:
        lines = list(csv.DictReader(file))
    counted = read(agent.run)["charts/episodes"][2][-1]
    assert len(lines) == counted
    assert {line["player_0"] for line in lines} <= {"learner", "random"}
    scores = [float(line["score_0"]) + float(line["score_1"]) for line in lines]
    assert scores == [0.0] * len(lines)
    resume(str(agent.run), number=5, updates=6, quiet=True)
    with (agent.run / "episodes.csv").open() as file:
        assert [line["update"] for line in csv.DictReader(file)][: len(lines)] == [
            line["update"] for line in lines
        ]
    with (agent.run / "metrics.csv").open() as file:
        names = {line["name"] for line in csv.DictReader(file)}
    assert names == set(read(agent.run))


# Evaluations


def member_with(tmp_path: Path, **wanted: Any) -> Member:
    config = settings(tmp_path, updates=4, eval=wanted)
    return Member(run_plan(config), new_run(config), make_learner(config, resolve([config])).rules)


def answer(win: float, low: float, score: float = 0.0) -> dict[str, Any]:
    found = {"win": win, "low": low, "high": 1.0, "score": score, "parity": 0.5}
    return {"results": {"careful": found, "random": {**found, "low": 1.0}}}


def test_targets_are_reached_by_the_lower_bound(tmp_path: Path) -> None:
    member = member_with(tmp_path, target=(0.5, 0.6, 0.9), games=16)
    for number, low in ((1, 0.45), (2, 0.55), (3, 0.61)):
        member.status.update, member.status.seconds = number, 10.0 * number
        member.want_evaluation()
        member.add_evaluation(number, answer(0.95, low))
    member.close()
    reached = [e for e in member.events if e["event"] == "target reached"]
    assert [(e["target"], e["seconds"]) for e in reached] == [(0.5, 20.0), (0.6, 30.0)]


def test_patience_counts_evaluations_without_a_new_best(tmp_path: Path) -> None:
    member = member_with(tmp_path, patience=2, games=16)
    for number, win in ((1, 0.5), (2, 0.7), (3, 0.6), (4, 0.7)):
        member.add_evaluation(number, answer(win, 0.1))
    assert (member.evaluations_since_best, member.best["update"]) == (2, 2)
    member.add_evaluation(5, answer(0.8, 0.1))
    assert member.evaluations_since_best == 0
    member.close()


def score_curves(tmp_path: Path, game: str, apart_s: float) -> dict[str, list[float]]:
    """What is written down of a score of -1, 0 and 2 in three evaluations."""
    config = replace(settings(tmp_path, updates=4, eval={"games": 16}), game=game)
    member = Member(run_plan(config), new_run(config), sparring.Rules(game))
    found = {"win": 0.5, "low": 0.1, "high": 1.0, "parity": 0.5}
    for number, score in ((1, -1.0), (2, 0.0), (3, 2.0)):
        member.status.update, member.status.seconds = number, apart_s * number
        member.want_evaluation()
        results = {name: {**found, "score": score} for name in member.opponents}
        member.add_evaluation(number, {"results": results})
    member.close()
    return {name: curve[2].tolist() for name, curve in read(member.run.path).items()}


def test_score_per_hour_is_of_evaluations(tmp_path: Path) -> None:
    curves = score_curves(tmp_path, "kuhhandel", apart_s=1800.0)
    assert curves["eval/score"] == [-1.0, 0.0, 2.0]
    assert curves["eval/score_per_hour"] == [2.0, 3.0]


def test_minutes_and_zero_sum_games_have_no_score_per_hour(tmp_path: Path) -> None:
    assert "eval/score_per_hour" not in score_curves(tmp_path, "kuhhandel", apart_s=60.0)
    assert "eval/score_per_hour" not in score_curves(tmp_path, "tic_tac_toe", apart_s=1800.0)


@pytest.mark.slow
def test_a_short_run_has_a_curve_of_evaluations(tmp_path: Path) -> None:
    plan = {"off": False, "games": 8, "final_games": 8}
    config = replace(settings(tmp_path, eval=plan), minutes=0.1)
    with evaluator_at_hand():
        agent = train_with(config, quiet=True)
    assert len(read(agent.run)["eval/strength"][0]) >= 2


def test_an_agent_says_what_it_is(tmp_path: Path) -> None:
    agent = trained(tmp_path, updates=2)
    assert agent.decisions > 0
    assert agent.minutes > 0
    assert agent.results == {}
    assert repr(agent).startswith(f"Agent(tic_tac_toe: {agent.run.name}/2, {agent.decisions:,} dec")
    state = sparring.new_state("tic_tac_toe")
    mask = np.ones(9, np.uint8)
    assert agent.act(state.observe_bytes(0), mask)[0] == agent.policy.action(state)
