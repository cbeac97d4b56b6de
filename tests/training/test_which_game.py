"""The game that is trained, and with it the preset, is the one that was asked for."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import sparring
from sparring.cli import main, read_options
from sparring.commands.shared.table import COMMANDS
from sparring.config import TrainConfig
from sparring.config.arguments import split_lists
from sparring.config.commands import BenchTrainConfig, ExploitConfig
from sparring.training.planning.settings import with_preset

QUICK = """
updates = 1
threads = 1
[collect]
games = 8
steps = 8
[net]
hidden = [8]
[eval]
off = true
final_games = 8
"""


def options(words: str) -> Any:
    return read_options(COMMANDS[0], words.split())


def preset(game: str) -> TrainConfig:
    return with_preset(game)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "words",
    [
        "tic_tac_toe --minutes 1",
        "--minutes 1 tic_tac_toe",
        "--minutes=1 --net.shared tic_tac_toe --no-json",
        "--set skip_forced=1 tic_tac_toe",
        "--ppo.lr 1e-3 --device cpu tic_tac_toe",
    ],
)
def test_options_may_stand_before_the_game(words: str) -> None:
    config = options(words)
    assert config.game == "tic_tac_toe"
    assert config.net == preset("tic_tac_toe").net
    assert config.collect == preset("tic_tac_toe").collect
    assert config.opponents == preset("tic_tac_toe").opponents


def test_a_file_says_the_game_unless_the_command_line_does(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('game = "tic_tac_toe"\nseed = 3\n')
    read = options(f"--config {file}")
    assert (read.game, read.seed, read.net) == ("tic_tac_toe", 3, preset("tic_tac_toe").net)
    read = options(f"--config={file} --seed 4")
    assert (read.game, read.seed, read.net) == ("tic_tac_toe", 4, preset("tic_tac_toe").net)
    read = options(f"--config {file} cage2")
    assert (read.game, read.seed, read.net) == ("cage2", 3, preset("cage2").net)
    assert options("--seed 1").game == TrainConfig.game


def test_python_honors_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('game = "tic_tac_toe"\nseed = 3\n' + QUICK)
    agent = sparring.train(config=file, seed=5, quiet=True, runs=str(tmp_path / "runs"))
    kept = tomllib.loads((agent.run / "config.toml").read_text())
    assert (kept["game"], kept["seed"], kept["updates"]) == ("tic_tac_toe", 5, 1)
    assert kept["net"]["hidden"] == [8]
    with pytest.raises(sparring.ConfigError, match="cannot read nowhere"):
        sparring.train("tic_tac_toe", config="nowhere.toml", quiet=True)


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (bytes(range(256)), "is not text in UTF-8"),
        (b"game = ", "is not TOML"),
        (b"[ppo]\nlr = nan", "ppo.lr: nan"),
        (b"minutes = -1", "minutes -1.0 must be above 0"),
        (b"[pppo]\nlr = 1", "no setting 'pppo'; did you mean 'ppo'?"),
        (b"[ppo]\nclop = 1", "no setting 'clop'; did you mean 'clip'?"),
        (b"ppo = 3", "ppo needs a table of settings, not 3"),
        (b"seed = 1979-05-27", "seed needs a whole number"),
        (b"net.hidden = [[1]]", "net.hidden needs a whole number"),
        (b"game = 3", "game needs text, not 3"),
        (b"x = " + b"[" * 5000, "config.toml"),
    ],
)
def test_a_bad_file_is_one_line(
    content: bytes, hint: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(content)
    assert main(["train", "--config", str(file), "--runs", str(tmp_path / "runs")]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert hint in line
    assert list(tmp_path.iterdir()) == [file]


def test_flags_are_read_alike_by_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("--set rounds=3 num_players=3", "--set rounds=3 --set num_players=3"):
        assert options(f"skull_king {words}").set[-2:] == ("rounds=3", "num_players=3")
        assert main(["games", "skull_king", *words.split()]) == 0
        assert "seats        3" in capsys.readouterr().out


def test_lists_are_read_in_one_go_and_one_by_one() -> None:
    together = split_lists(
        ["x", "--opponents", "a=1", "--seed", "3", "--opponents", "b"], TrainConfig
    )
    assert together == ["x", "--opponents", "a=1", "b", "--seed", "3"]
    hidden = split_lists(["--hidden", "512", "256", "skull_king"], BenchTrainConfig)
    assert hidden == ["--hidden", "512", "--hidden", "256", "skull_king"]
    kinds = split_lists(["--kinds", "scratch", "own", "latest"], ExploitConfig)
    assert kinds == ["--kinds", "scratch", "--kinds", "own", "latest"]
    assert options("tic_tac_toe --net.hidden 8 --net.hidden 4").net.hidden == (8, 4)
    assert options("tic_tac_toe --ppo.gamma_into 1 0.5").ppo.gamma_into == (1.0, 0.5)


def test_help_starts_from_the_game_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help", "--minutes", "1", "tic_tac_toe"]) == 0
    assert "default: 64 64" in capsys.readouterr().out
    assert main(["train", "--help", "--nonsense"]) == 0
