"""`sparring eval`, and `sparring play` against a trained agent, as a user meets them."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from commands.typed import ANY
from sparring import Rules, new_state
from sparring.cli import main
from sparring.config import NetConfig
from sparring.league.arena import evaluate
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.store.checkpoint import save
from sparring.store.policies import load_policy, save_policy

QUICK = ["--games", "64", "--threads", "1"]


def fresh(game: str, **flags: int) -> Policy:
    torch.manual_seed(0)
    rules = Rules(game, flags)
    net = Perceptron(rules, NetConfig(hidden=(16, 16)))
    torch.nn.init.normal_(net.policy_head.weight)
    return Policy(rules, net)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with saved policies and a run."""
    made = tmp_path_factory.mktemp("policies")
    save_policy(fresh("tic_tac_toe"), made / "ttt")
    save_policy(fresh("skull_king", num_players=3), made / "three")
    policy = fresh("tic_tac_toe")
    meta = {
        "game": "tic_tac_toe",
        "rules_version": policy.rules.rules_version,
        "game_config": policy.rules.config,
        "net": {"hidden": [16, 16], "shared": True, "activation": "relu", "sparse": True},
        "update": 12,
    }
    checkpoints = made / "run" / "checkpoints"
    checkpoints.mkdir(parents=True)
    save(checkpoints, 12, tensors={"net": policy.net.state_dict()}, blobs={}, meta=meta)
    return made


def report(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["eval", *words, *QUICK, "--json"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    return shown


def test_the_output_says_which_checkpoint_is_meant(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "run" / "config.toml").touch()
    monkeypatch.chdir(tmp_path)
    Path("runs").symlink_to(folder)
    assert main(["eval", "latest", "--against", "random", *QUICK, "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines()[0] == "latest is run/12"
    assert json.loads(shown.out)["policy"] == "run/12"
    assert main(["eval", "run/12", "--against", "random", *QUICK, "--json"]) == 0
    assert " is run/12" not in capsys.readouterr().err  # it says so itself


def test_a_bot_is_measured_against_bots(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["captain", "--game", "skull_king", "--against", "random,captain"]
    assert main(["eval", *words, "--games", "500", "--threads", "1"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^random +9\d\.\d%  +9\d\.\d% \.\. \d+\.\d% ", shown, re.MULTILINE)
    assert "500 games against each: 125 deals, each from all 4 seats\n" in shown
    assert re.search(r"^distinct games  captain  125 of 500$", shown, re.MULTILINE)
    assert "parity is 25.0% (1 of 4 seats): stronger than random" in shown
    assert "not distinguishable from captain" in shown
    shares = re.search(r"^by seat  captain .*", shown, re.MULTILINE)
    assert shares
    assert len(re.findall(r"\d+\.\d%", shares[0])) == 4
    assert max(len(line) for line in shown.splitlines()[:5]) < 80


def test_it_is_told_how_often_games_repeat(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    words = [str(folder / "ttt"), "--against", str(folder / "run"), "--games", "400"]
    assert main(["eval", *words]) == 0
    shown = capsys.readouterr().out
    told = re.search(
        r"^distinct games  .*  (\d+) of 400, intervals count (\d+) of 200 deals", shown, re.M
    )
    assert told
    assert int(told[2]) <= int(told[1]) < 400
    assert "; the first 3 decisions of a deal are random\n" in shown
    assert "400 games against each: 200 deals, each from all 2 seats\n" in shown
    assert main(["eval", *words, "--opening-plies", "0"]) == 0
    shown = capsys.readouterr().out
    assert re.search(
        r"^distinct games  .*  [12] of 400, intervals count 1 of 200 deals; .* --opening-plies$",
        shown,
        re.M,
    )
    assert "not distinguishable from" in shown
    assert main(["eval", "captain", "--game", "skull_king", "--games", "7", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["results"].values()
    assert (found["games"], found["seat_games"]) == (8, [2, 2, 2, 2])


def test_a_bot_may_be_called_by_its_full_name(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--game", "tic_tac_toe", "--against"]
    full = report(capsys, "bot:careful", *words, "bot:random,careful")
    plain = report(capsys, "careful", *words, "random,careful")
    assert full["results"] == plain["results"]
    assert list(full["results"]) == ["random", "careful"]
    assert main(["eval", "careful", *words, "bot:carefull"]) == 2
    assert "did you mean 'careful'?" in capsys.readouterr().err


def test_json_is_what_the_arena_says(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    shown = report(capsys, str(folder / "ttt"), "--against", "random,careful", "--seed", "5")
    policy = load_policy(folder / "ttt")
    results = evaluate(policy, ["random", "careful"], games=64, seed=5)
    assert shown["results"] == {name: result.summary() for name, result in results.items()}
    assert (shown["game"], shown["seed"], shown["sampled"]) == ("tic_tac_toe", 5, False)


def test_runs_checkpoints_and_policies_are_all_found(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    run, checkpoint = folder / "run", folder / "run" / "checkpoints" / "00000012"
    results = [report(capsys, str(p), "--against", "random") for p in (run, checkpoint)]
    assert results[0]["results"] == results[1]["results"]
    opponent = str(folder / "ttt")
    met = report(capsys, str(run), "--against", opponent)["results"]
    assert list(met) == [opponent]


def test_left_out_the_opponent_is_the_best_bot(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert list(report(capsys, str(folder / "ttt"))["results"]) == ["careful"]


def test_flags_are_those_of_the_training_unless_set(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    shown = report(capsys, str(folder / "three"), "--set", "rounds=2,1")
    assert shown["flags"]["num_players"] == 3
    assert shown["flags"]["rounds"][:3] == [2, 1, 0]
    assert len(shown["results"]["captain"]["seat_wins"]) == 3
    assert shown["results"]["captain"]["length"] == 3 * (2 + 3)


def test_drawn_actions_can_be_asked_for(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    greedy = report(capsys, str(folder / "ttt"))
    assert report(capsys, str(folder / "ttt"), "--sampled")["results"] != greedy["results"]


def test_each_player_may_be_told_how_to_choose(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    path = str(folder / "ttt")
    found = report(capsys, f"{path}@sampled", "--against", f"{path}@greedy,{path}")["results"]
    assert list(found) == [f"{path}@greedy", path]
    drawn = evaluate(
        load_policy(path, name="a").always(greedy=False), [load_policy(path, name="b")], games=64
    )
    assert found[path]["win"] == drawn["b"].summary()["win"]
    assert main(["eval", path, "--against", "careful@greedy"]) == 2
    assert "is a bot, without a network" in capsys.readouterr().err


def test_the_last_line_says_what_is_next(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["eval", str(folder / "run"), *QUICK]) == 0
    assert capsys.readouterr().out.endswith(f"next: sparring play {folder / 'run'}\n")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("", "CHALLENGER"),
        ("capten --game skull_king", "did you mean 'captain'?"),
        ("captain --game skul_king", "did you mean 'skull_king'?"),
        ("captain --game skull_king --against capten", "did you mean 'captain'?"),
        ("captain --game skull_king --games 1", "at least 2"),
        ("captain --game skull_king --threads -1", "must be from 0 to 1024"),
        ("captain --game skull_king --opening-plies -2", "must be from 0 to 100"),
        ("careful --game tic_tac_toe --opening-plies 9", "--opening-plies 9 leaves no decision"),
        ("captain --game skull_king --set nmu_players=3", "did you mean 'num_players'?"),
        ("captain --against random rule_easy --games 4", "write --against random,rule_easy; see"),
        ("captain --game skull_king --against random,random", "given twice"),
        ("FOLDER/ttt --game skull_king", "plays tic_tac_toe, not skull_king"),
        ("FOLDER/three --set num_players=4", "trained with num_players=3"),
        ("FOLDER/three --against FOLDER/ttt", "plays tic_tac_toe, not skull_king"),
        ("FOLDER/nothing", "no player"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(
    words: str, hint: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", *words.replace("FOLDER", str(folder)).split()]) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert hint in shown.err


def test_a_folder_without_checkpoints_fails(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", str(tmp_path)]) == 3
    assert "holds no checkpoint" in capfd.readouterr().err


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(words: str, typed: str) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert main(["play", *words.split()]) == 0
        return capsys.readouterr().out

    return run


def test_the_trained_agent_plays_and_gives_hints(play: Any, folder: Path) -> None:
    path = folder / "run"
    shown = play(f"{path} --seed 3", "?\n" + ANY)
    assert f"against {path}." in shown
    assert re.search(r"(three in a row|board full): (you win|you lose|a draw)\n", shown)
    policy = load_policy(path)
    state = new_state("tic_tac_toe", seed=3)
    best = policy.rules.action_name(policy.action(state))
    assert f"{path} would choose: {best}\n" in shown
    again = shown.splitlines()[-1].removeprefix("Play it again: sparring play ")
    assert again == f"tic_tac_toe --seat 0 --against {path} --seed 3"
    assert play(again, "?\n" + ANY) == shown


def test_the_agent_moves_as_it_would_on_its_own(play: Any, folder: Path) -> None:
    """Every move that is told is the one that the policy chooses in that position."""
    policy = load_policy(folder / "ttt")
    shown = play(f"{folder / 'ttt'} --seat 1 --seed 1", ANY)
    told = re.findall(r"^(you|seat 0): (\w\d)$", shown, re.MULTILINE)
    state = new_state("tic_tac_toe", seed=1)
    for who, move in told:
        names = {policy.rules.action_name(action): action for action in state.legal()}
        if who == "seat 0":
            assert names[move] == policy.action(state)
        state.apply(names[move])
    assert state.over


def test_an_agent_that_draws_opens_in_several_ways_and_repeats_by_seed(
    play: Any, folder: Path
) -> None:
    def first_move(seed: int) -> str:
        shown = play(f"tic_tac_toe --seat 1 --against {folder / 'ttt'}@sampled --seed {seed}", "")
        return re.findall(r"^seat 0: (\w\d)$", shown, re.MULTILINE)[0]

    moves = [first_move(seed) for seed in range(12)]
    assert len(set(moves)) > 1
    assert first_move(3) == moves[3]


def test_agents_and_bots_sit_together(play: Any, folder: Path) -> None:
    words = f"skull_king --set num_players=3 --set rounds=1 --against random,{folder / 'three'}"
    shown = play(f"{words} --seed 2", "?\n" + ANY * 2)
    assert f"{folder / 'three'} would choose: bid" in shown
    assert "Final standings:" in shown
    shown = play(f"{folder / 'three'} --set rounds=1 --set skip_forced=1 --seed 2", ANY * 2)
    assert "You sit in seat 0 of 3" in shown
    assert "Final standings:" in shown


def test_an_agent_of_other_flags_is_refused(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", "skull_king", "--against", str(folder / "three")]) == 2
    assert "num_players=3" in capfd.readouterr().err
