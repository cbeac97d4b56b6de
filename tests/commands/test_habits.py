"""People type the words of other libraries; what they mean here is said at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import sparring
from commands.run_helpers import make_run
from sparring.cli import COMMANDS, main, read_options
from sparring.config import TrainConfig
from sparring.config.options import paths_of
from sparring.config.synonyms import SYNONYMS, setting_named

ALGORITHMS = "ppo, dqn, qrdqn, sac, redq, td3 or gumbel"


@pytest.mark.few(10)
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--learning-rate 1e-3", "no option --learning-rate; did you mean --ppo.lr?"),
        ("--learning_rate 1e-3", "did you mean --ppo.lr?"),
        ("--lr 1e-3 --algo sac", "did you mean --sac.lr?"),
        ("--ppo.learning_rate 1e-3", "did you mean --ppo.lr?"),
        ("--total-timesteps 1e6", "did you mean --decisions?"),
        ("--n-steps=128", "did you mean --collect.steps?"),
        ("--num-envs 64", "did you mean --collect.games?"),
        ("--n-envs 64", "did you mean --collect.games?"),
        ("--batch-size 64", "did you mean --ppo.minibatch?"),
        ("--batch-size 64 --algo dqn", "did you mean --replay.batch?"),
        ("--gamma 0.99", "did you mean --ppo.gamma?"),
        ("--ent-coef 0.01", "did you mean --ppo.entropy?"),
        ("--clip-range 0.2", "did you mean --ppo.clip?"),
        ("--random-seed 1", "did you mean --seed?"),
        ("--env-id CartPole-v1", "the game comes first: sparring train NAME"),
        ("--device gpu", "device 'gpu' is unknown; use cpu, cuda or auto; did you mean 'cuda'?"),
        ("--minuts 3", "did you mean --minutes?"),
        (
            "--net.hidden 256x",
            "--net.hidden: '256x' is not a whole number, such as 1000, 1_000 or 1e3; separate",
        ),
        ("--net.hidden 64,abc", "--net.hidden: 'abc' is not a whole number, such as"),
        ("--algo pp0", "sac, redq, td3 or gumbel; did you mean 'ppo'?"),
        ("--algo a2c", f"algo 'a2c' is unknown; use a module:factory, {ALGORITHMS}\n"),
        ("--collect.games 12x", "--collect.games: '12x' is not a whole number"),
        ("--minutes", "--minutes needs a value"),
    ],
)
def test_a_word_of_others_is_answered_with_ours(
    words: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "tic_tac_toe", *words.split()]) == 2
    told = capsys.readouterr().err
    assert hint in told
    assert told.count("\n") == 1


def test_other_commands_are_asked_for_options_that_they_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["bench", "train", "tic_tac_toe", "--num-envs", "3"]) == 2
    assert "did you mean --games?" in capsys.readouterr().err
    assert main(["runs", "--learning-rate", "3"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_a_resumed_run_keeps_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "runs", "first", {})
    make_run(tmp_path / "runs", "second", {}, algo="dqn")
    monkeypatch.chdir(tmp_path)
    for words, line in (
        ("first --minutes 2 --ppo.lr 3e-4", "tic_tac_toe --init first --ppo.lr 3e-4"),
        ("second --dqn.lr 1e-3", "tic_tac_toe --init second --algo dqn --dqn.lr 1e-3"),
        ("--net.hidden 8 8 --net.no-shared", "GAME --init RUN --net.hidden 8 8 --net.no-shared"),
    ):
        assert main(["resume", *words.split()]) == 2
        (said,) = capsys.readouterr().err.splitlines()
        assert f"; a new run from these weights: sparring train {line}" in said
    assert main(["resume", "first", "--ppo.learning-rate", "3"]) == 2
    assert "no option --ppo.learning-rate" in capsys.readouterr().err


def test_every_meaning_is_a_setting() -> None:
    known = {*paths_of(TrainConfig), "game"}
    for setting, words in SYNONYMS.items():
        for word in words.split():
            assert {setting_named(word), setting_named(word, "sac")} & known, (setting, word)
    for algo in ("dqn", "sac"):
        for word in ("lr", "gamma", "batch_size", "tau", "max_grad_norm"):
            assert setting_named(word, algo) in known


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"lr": 1e-3}, r"no setting 'lr'; did you mean ppo=\{'lr': \.\.\.\}\?"),
        ({"learning_rate": 1e-3}, r"did you mean ppo=\{'lr': \.\.\.\}\?"),
        ({"learning_rate": 1e-3, "algo": "sac"}, r"did you mean sac=\{'lr': \.\.\.\}\?"),
        ({"total_timesteps": 1000}, r"did you mean 'decisions'\?"),
        ({"ppo": {"learning_rate": 1}}, r"did you mean ppo=\{'lr': \.\.\.\}\?"),
        ({"env_id": "x"}, r"the game comes first: train\('skull_king', \.\.\.\)"),
        ({"minuts": 1}, r"did you mean 'minutes'\?"),
        ({"wxyz": 1}, "no setting 'wxyz'; `sparring train --help-all` lists them$"),
    ],
)
def test_keywords_of_others_in_python(given: dict[str, object], hint: str) -> None:
    with pytest.raises(sparring.ConfigError, match=hint):
        sparring.train("tic_tac_toe", quiet=True, **given)  # type: ignore[arg-type]


def test_files_and_sweeps_are_answered_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[ppo]\nlearning_rate = 0.1\n")
    assert main(["train", "tic_tac_toe", "--config", str(file)]) == 2
    assert "no setting 'learning_rate'; did you mean 'ppo.lr'?" in capsys.readouterr().err
    file.write_text(
        'game = "tic_tac_toe"\nupdates = 1\n[sweep]\ntrials = 1\n[sweep.ranges]\n'
        '"ppo.learning_rate" = [0.1, 0.2]\n'
    )
    assert main(["sweep", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "range 'ppo.learning_rate': no such setting; did you mean 'ppo.lr'?" in line


@pytest.mark.parametrize(
    ("words", "hidden"),
    [
        ("tic_tac_toe --net.hidden 16,8", (16, 8)),
        ("--net.hidden 16 8 tic_tac_toe", (16, 8)),
        ("--net.hidden=16,8 tic_tac_toe", (16, 8)),
        ("--net.hidden 16 --game tic_tac_toe", (16,)),
        ("--game=tic_tac_toe --net.hidden 16", (16,)),
    ],
)
def test_lists_and_the_game_as_people_write_them(words: str, hidden: tuple[int, ...]) -> None:
    config = read_options(COMMANDS[0], words.split())
    assert config.game == "tic_tac_toe"
    assert config.net.hidden == hidden
