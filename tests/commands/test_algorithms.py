"""Every command with runs of DQN and SAC: trained, gone on with, measured, drawn, exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparring
from commands.run_helpers import make_run
from sparring.cli import main
from sparring.nets.policy import Policy
from sparring.training.records.comparison import compare

QUICK: dict[str, Any] = {
    "net": {"hidden": (16,)},
    "replay": {"warmup": 200, "batch": 32, "ratio": 1.0},
    "eval": {"off": True, "final_games": 4},
    **{"updates": 2, "threads": 1, "tensorboard": False, "device": "cpu", "quiet": True},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two updates: two of DQN, the second in a league with the first, and one of SAC."""
    root = tmp_path_factory.mktemp("algorithms") / "runs"
    quick = {**QUICK, "runs": str(root)}
    sparring.train("tic_tac_toe", algo="dqn", name="dqn", **quick)
    league = {
        "opponents": ("self=1", "past=1", f"{root / 'dqn'}=1"),
        "league": {"every_decisions": 500},
    }
    sparring.train("tic_tac_toe", algo="dqn", name="league", **quick, **league)
    sparring.train("tic_tac_toe", algo="sac", name="sac", **quick)
    return root


def rows(policy: Policy) -> Any:
    return np.zeros((3, policy.rules.obs_bytes), np.uint8), np.ones((3, 9), np.uint8)


def test_policies_by_value_are_loaded_as_such_from_runs_and_leagues(runs: Path) -> None:
    for place in (runs / "dqn", runs / "league", runs / "league" / "past" / "1"):
        policy = sparring.load(place)
        assert policy.is_value_based
        obs, mask = rows(policy)
        assert set(policy.probabilities(obs, mask).ravel()) == {0.0, 1.0}
        assert np.isfinite(policy.value(obs, mask)).all()
    sac = sparring.load(runs / "sac")
    assert not sac.is_value_based
    with pytest.raises(sparring.ConfigError, match="sac/2 has no values"):
        sac.value(rows(sac)[0])


def test_a_policy_by_value_does_not_draw(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dqn = str(runs / "dqn")
    assert main(["eval", f"{dqn}@sampled", "--games", "4"]) == 2
    assert "plays the best action; there are no probabilities to sample" in capsys.readouterr().err
    found = []
    for words in ([], ["--sampled"]):
        assert main(["eval", dqn, "--games", "16", "--json", *words]) == 0
        found.append(json.loads(capsys.readouterr().out)["results"])
    assert found[0] == found[1]


@pytest.mark.slow
def test_runs_go_on_are_drawn_played_and_listed(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("dqn", "sac"):
        run = str(runs / name)
        assert main(["resume", run, "--updates", "3", "--json"]) == 0
        assert main(["plot", run]) == 0
        assert main(["render", run, "--out", str(tmp_path / f"{name}.svg")]) == 0
    assert main(["arena", str(runs / "dqn"), str(runs / "sac"), "careful", "--games", "8"]) == 0
    page = (runs / "dqn" / "plot.html").read_text()
    for title in ("Samples trained per decision", "Replay: share that is full", "Q loss"):
        assert title in page
    assert "Temperature (entropy coefficient)" in (runs / "sac" / "plot.html").read_text()
    capsys.readouterr()
    assert main(["runs", "--runs", str(runs), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["runs"]
    assert {run["name"]: run["algo"] for run in listed}["dqn"] == "dqn"


def test_algorithms_are_compared_by_what_they_share(tmp_path: Path) -> None:
    made = []
    for name, algo, lr in (("a", "dqn", 1e-3), ("b", "sac", 1e-3), ("c", "sac", 1e-4)):
        made.append(make_run(tmp_path, name, {5: 0.5}, algo=algo, **{algo: {"lr": lr}}))
    found = compare(made)
    assert [group.label for group in found.groups] == [
        *("algo=dqn", "algo=sac, sac.lr=0.001", "algo=sac, sac.lr=0.0001")
    ]
    by = compare(made, "sac.lr")
    assert [group.label for group in by.groups] == ["algo=dqn", "sac.lr=0.001", "sac.lr=0.0001"]


def test_exploit_knows_how_the_policy_plays_and_what_trains_the_response(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--decisions", "300", "--games", "8", "--threads", "1", "--json"]
    words += ["--runs", str(tmp_path), "--name", "response", "--device", "cpu"]
    words += ["--kinds", "scratch"]
    assert main(["exploit", str(runs / "dqn"), "--algo", "dqn", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["plays"] == "greedy"
    assert sparring.load(tmp_path / "response-scratch-0").is_value_based
    # Neither draws: a game from each seat is all there is, and what it brings is no estimate.
    bound = told["lower_bound"]
    assert (told["result"]["games"], bound["low"], bound["high"]) == (2, *[bound["value"]] * 2)
    assert told["exploited"] == (bound["value"] > 0)


def test_weights_of_another_kind_are_no_beginning(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--net.hidden", "16", "--runs", str(tmp_path / "runs"), "--device", "cpu"]
    assert main(["train", "tic_tac_toe", "--init", str(runs / "dqn"), *words]) == 2
    assert "has learned action values, and this algorithm learns" in capsys.readouterr().err
    sac = ["--algo", "dqn", "--init", str(runs / "sac")]
    assert main(["train", "tic_tac_toe", *sac, *words]) == 2
    assert "has learned action probabilities" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
    mine = {**QUICK, "updates": 1, "init": str(runs / "dqn"), "runs": str(tmp_path / "runs")}
    assert sparring.train("tic_tac_toe", algo="dqn", **mine).policy.is_value_based


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_bench_measures_learning_from_replay(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--rounds", "2", "--warm-up", "1", "--threads", "1", "--hidden", "16"]
    words += ["--device", "cpu", "--batch", "32", "--ratio", "1", "--steps", "16"]
    assert main(["bench", "train", "tic_tac_toe", "--algo", "dqn", *words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["training"]["algo"], report["training"]["batch"]) == ("dqn", 32)
    for name in ("ours", "ceiling"):
        found = report["measured"][name]
        decided, trained = (found[f"{what}_per_s"]["median"] for what in ("decisions", "samples"))
        assert trained == pytest.approx(decided, rel=0.35)  # a ratio of 1, in whole batches
        stepped = found["optimizer_steps_per_s"]["median"]
        assert stepped == pytest.approx(trained / 32, rel=0.01, abs=0.2)
        assert found["phases"]["inference"] > 0
    reached = report["machine_share"]
    assert 0 < reached["share"] <= 1
    assert "of this machine" in reached["line"]
    assert reached["advice"] is None  # minibatches are tried for PPO alone
    assert report["fraction"]["median"] > 0
    assert main(["bench", "train", "tic_tac_toe", "--algo", "dqn", "--epochs", "2"]) == 2
    assert "--epochs: dqn learns from replay here; it has --ratio" in capsys.readouterr().err
    assert main(["bench", "train", "tic_tac_toe", "--ratio", "2"]) == 2
    assert "--ratio: ppo learns from fresh rollouts here; it has --epoc" in capsys.readouterr().err


@pytest.mark.slow
def test_what_is_exported_says_how_to_choose(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    for name, says in (("dqn", "take the largest; never draw from them"), ("sac", "Mask illegal")):
        assert main(["export", str(runs / name), "--onnx", str(tmp_path / name)]) == 0
        told = capsys.readouterr().out
        assert says in told
        assert "value [rows]" not in told  # masks would be needed, or nobody has trained it
