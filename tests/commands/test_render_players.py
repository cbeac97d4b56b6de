"""Who plays in what `sparring render` shows: policies, bots, and with which flags."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from commands.render_helpers import BOARD, report
from sparring import Rules
from sparring.cli import main
from sparring.commands import render
from sparring.config import NetConfig
from sparring.config.tools import RenderConfig
from sparring.games import laser_hockey
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.store.policies import save_policy


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    rules = Rules("laser_hockey")
    net = Perceptron(rules, NetConfig(hidden=(16, 16)))
    torch.nn.init.normal_(net.policy_head.weight)
    return save_policy(Policy(rules, net), tmp_path_factory.mktemp("policies") / "mine")


def test_a_policy_plays_the_best_bot_unless_told(
    policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "game.png"
    quick = ["--set", "mode=TRAIN_SHOOTING"]
    assert report(capsys, out, str(policy), *quick)["players"] == [str(policy), "strong"]
    weak = report(capsys, out, str(policy), "--against", "weak", *quick)
    assert weak["players"] == [str(policy), "weak"]
    swapped = report(capsys, out, f"weak,{policy}", *quick)
    assert swapped["players"] == ["weak", str(policy)]
    assert swapped["game"] == "laser_hockey"


@pytest.mark.parametrize("game", ["skull_king", pytest.param("kuhhandel", marks=pytest.mark.slow)])
def test_the_newest_run_is_drawn_right_after_training(
    game: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the README says to do after `make train`."""
    monkeypatch.chdir(tmp_path)
    quick = {"rounds": [1, 2, *[0] * 8]} if game == "skull_king" else {"max_decisions": 30}
    rules = Rules(game, quick)
    run = Path("runs") / f"{game}-ppo-20261115-214501"
    policy = Policy(rules, Perceptron(rules, NetConfig(hidden=(8,))), meta={"update": 120})
    save_policy(policy, run / "checkpoints/00000120")
    (run / "config.toml").touch()
    for kind in ("gif", "svg", "png"):
        facts = report(capsys, tmp_path / f"game.{kind}", "latest", "--width", "160")
        assert facts["players"] == ["latest", *[rules.bots[-1]] * (rules.seats - 1)]
    text = (tmp_path / "game.svg").read_text("utf-8")
    report(capsys, tmp_path / "game.svg", str(run / "checkpoints/00000120"), "--width", "160")
    assert ">ppo 214501/120<" in (tmp_path / "game.svg").read_text("utf-8")
    assert ">latest<" in text


def test_the_flags_are_those_of_the_training_wherever_the_policy_sits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = Rules("laser_hockey", {"mode": "TRAIN_SHOOTING", "scale_observation": 1})
    trained = {"mode": "TRAIN_SHOOTING", "scale_observation": 1}
    net = Perceptron(rules, NetConfig(hidden=(16, 16)))
    mine = str(save_policy(Policy(rules, net), tmp_path / "mine"))
    out = tmp_path / "game.png"
    for words, players in (
        ([mine], [mine, "strong"]),
        (["weak", "--against", mine], ["weak", mine]),
        (["weak", "--against", mine, "--game", "laser_hockey"], ["weak", mine]),
        ([f"bot:weak,{mine}"], ["weak", mine]),
        ([mine, "--against", "bot:weak"], [mine, "weak"]),
    ):
        facts = report(capsys, out, *words)
        assert (facts["players"], facts["flags"]) == (players, trained), words
    facts = report(capsys, out, "weak", "--against", mine, "--set", "mode=TRAIN_DEFENSE")
    assert facts["flags"] == {**trained, "mode": "TRAIN_DEFENSE"}
    facts = report(capsys, out, "bot:weak", "--game", "laser_hockey", "--set", "keep_mode=0")
    assert (facts["players"], facts["flags"]) == (["weak", "strong"], {"keep_mode": 0})


def test_two_copies_of_a_policy_draw_for_themselves(tmp_path: Path) -> None:
    """A policy that wants nothing anywhere: whatever differs between the seats was drawn."""
    rules = Rules("laser_hockey")
    net = Perceptron(rules, NetConfig(hidden=(16, 16)))
    torch.nn.init.zeros_(net.policy_head.weight)
    torch.nn.init.zeros_(net.policy_head.bias)
    folder = save_policy(Policy(rules, net), tmp_path / "mine")
    config = RenderConfig(players=f"{folder},{folder}", out="game.svg")
    words = render.split_list(config.players)
    rules, known = render.find_game(words)
    players = render.find_players(config, words, rules, known)
    assert players[0] is players[1]

    def spins(sampled: bool) -> np.ndarray:
        states = render.play_one(rules, players, 3, sampled=sampled)
        places = [laser_hockey.read(state) for state, _ in zip(states, range(6), strict=False)]
        return np.array([(at.left.spin, at.right.spin) for at in places])

    assert (spins(False) == 0).all()
    left, right = spins(True)[1:].T
    assert (left != 0).all() and (right != 0).all()
    assert not np.isclose(left, right).any()
    assert np.diff(left).min() < 0 < np.diff(left).max()  # and every step draws anew


def test_bots_alone_need_no_learning_library(tmp_path: Path) -> None:
    words = ["render", *BOARD, "--out", str(tmp_path / "game.gif")]
    asked = f"""
import sys
from sparring.cli import main
main({words!r})
sys.exit("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"game.gif: " in done.stdout


def test_who_cannot_play_is_told_to_watch(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "laser_hockey"]) == 2
    assert "watch it: sparring render laser_hockey:strong" in capfd.readouterr().err
    assert main(["play", str(policy)]) == 2
    assert f"watch it: sparring render {policy}" in capfd.readouterr().err


def test_a_policy_of_another_game_is_refused(
    policy: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "game.gif")
    assert main(["render", str(policy), "--game", "tic_tac_toe", "--out", out]) == 2
    assert "plays laser_hockey, not tic_tac_toe" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []
