"""Help: short where there is much to say, whole on request, and about the chosen algorithm."""

from __future__ import annotations

import shlex

import pytest

from sparring.cli import COMMANDS, find, main, words_of
from sparring.commands.shared.helping import EXAMPLES, SHORT
from sparring.config.arguments import unknown_option_message
from sparring.config.options import options_of


def helped(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words.split()) == 0
    return capsys.readouterr().out


def test_help_of_train_fits_a_screen_and_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    shown = helped("train --help", capsys)
    assert len(shown.splitlines()) <= 40
    for name in ("--minutes", "--name", "--ppo.lr", "--net.hidden", "--opponents", "--help-all"):
        assert name in shown
    assert "sparring train skull_king" in shown
    assert helped("help train", capsys) == shown


def test_the_whole_help_is_about_the_algorithm_that_learns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    usual = helped("train --help-all", capsys)
    assert "--ppo.gae-lambda" in usual
    assert "--dqn.epsilon" not in usual
    assert "--replay.capacity" not in usual
    remembering = helped("train tic_tac_toe --algo dqn --help-all", capsys)
    assert "--dqn.epsilon" in remembering
    assert "--replay.capacity" in remembering
    assert "--ppo.gae-lambda" not in remembering
    assert "--dqn.lr" in helped("train --help --algo dqn", capsys)


def test_the_whole_help_has_every_option_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("eval", "bench train", "sweep"):
        command, _ = find(name.split())
        config, _ = words_of(command, [])
        shown = helped(f"{name} --help-all", capsys)
        for option in options_of(config):
            assert all(flag in shown for flag in option.flags), option.path


def test_help_of_two_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert "usage: sparring bench pool GAME" in helped("help bench pool", capsys)
    assert "bench scaling" in helped("help bench", capsys)
    assert helped("help", capsys) == helped("--help", capsys)
    assert main(["help", "trian"]) == 2
    assert "did you mean 'train'?" in capsys.readouterr().err


def test_short_help_and_examples_name_options_that_exist() -> None:
    by_name = {command.name: command for command in COMMANDS}
    for name, paths in SHORT.items():
        config, _ = words_of(by_name[name], [])
        known = {option.path for option in options_of(config)}
        assert {path.replace("ALGO.", "ppo.") for path in paths} <= known
    for name, examples in EXAMPLES.items():
        for typed, _ in examples:
            command, rest = find(shlex.split(typed)[1:])
            assert command.name == name
            config, words = words_of(command, rest)
            assert unknown_option_message(words, config, name) == ""
