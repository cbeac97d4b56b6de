"""Every setting is held to its range where it is set: in Python, in a file, on the command line."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import numpy as np
import pytest

import sparring.config
from sparring.cli import main, read_options
from sparring.commands.shared.table import COMMANDS
from sparring.config import (
    CollectConfig,
    EvaluationConfig,
    NetConfig,
    PPOConfig,
    ReplayConfig,
    TrainConfig,
)
from sparring.config.ranges import Checked, NumberRange, at_least, types_of
from sparring.errors import ConfigError
from sparring.schedule import Schedule

CONFIGS = list(
    dict.fromkeys(
        [getattr(sparring.config, name) for name in sparring.config.__all__]
        + [command.settings for command in COMMANDS]
    )
)


def is_number(kind: Any) -> bool:
    return kind in (int, float, Schedule) or any(is_number(one) for one in get_args(kind))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_every_number_has_a_range(config: type) -> None:
    assert issubclass(config, Checked)
    kinds = types_of(config)
    assert {field.name for field in fields(config)} == set(kinds)
    without = [name for name, (kind, limit) in kinds.items() if is_number(kind) and not limit]
    assert without == []
    nested = [kind for kind, _ in kinds.values() if is_dataclass(kind)]
    assert all(kind in CONFIGS for kind in nested)


@pytest.mark.parametrize(
    ("config", "setting", "value", "message"),
    [
        (PPOConfig, "max_grad_norm", -0.5, "ppo.max_grad_norm -0.5 must be above 0"),
        (PPOConfig, "clip", -1, "ppo.clip -1 must be at least 0"),
        (PPOConfig, "gamma", 2, "ppo.gamma 2 must be from 0 to 1"),
        (PPOConfig, "gae_lambda", "0%:1,100%:3", "must be from 0 to 1"),
        (PPOConfig, "gamma_into", (0.5, -1.0), "ppo.gamma_into -1.0 must be from 0 to 1"),
        (PPOConfig, "value_weight", -1, "ppo.value_weight -1 must be at least 0"),
        (PPOConfig, "lr", float("nan"), "ppo.lr: nan: give finite numbers"),
        (PPOConfig, "minibatch", 0, "ppo.minibatch 0 must be at least 1"),
        (PPOConfig, "epochs", True, "ppo.epochs needs a whole number, not True"),
        (NetConfig, "hidden", (64, 0), "net.hidden 0 must be from 1"),
        (NetConfig, "hidden", (), "net.hidden has 0 layers"),
        (NetConfig, "hidden", 64, "net.hidden needs a list, not 64"),
        (NetConfig, "activation", "rleu", "use relu, tanh or silu; did you mean 'relu'?"),
        (NetConfig, "std", "wide", "'wide' is unknown; use shared or predicted"),
        (NetConfig, "shared", 1, "net.shared needs true or false, not 1"),
        (CollectConfig, "steps", 0, "collect.steps 0 must be at least 1"),
        (CollectConfig, "games", 10**30, "at most 1,000,000,000,000"),
        (EvaluationConfig, "final_games", 0, "eval.final_games 0 must be at least 2"),
        (TrainConfig, "minutes", -1, "minutes -1.0 must be above 0"),
        (TrainConfig, "minutes", float("inf"), "minutes inf must be a finite number above 0"),
        (TrainConfig, "minutes", 10**400, "must be a finite number"),
        (TrainConfig, "updates", -3, "updates -3 must be at least 0"),
        (TrainConfig, "threads", -1, "threads -1 must be from 0 to"),
        (TrainConfig, "threads", 100_000, "threads 100000 must be from 0 to"),
        (TrainConfig, "seed", 10**23, "must be at most 9,223,372,036,854,775,807"),
        (TrainConfig, "seed", 10**5000, "seed (too many digits) must be"),
        (TrainConfig, "keep", 0, "keep 0 must be at least 1"),
        (TrainConfig, "device", "cdua", "device 'cdua' is unknown; use cpu, cuda or auto; did"),
        (TrainConfig, "pool", "gpu", "pool 'gpu' is unknown"),
        (TrainConfig, "opponents", [1], "opponents needs text, not 1"),
        (TrainConfig, "ppo", 3, "ppo needs a table of settings, not 3"),
    ],
    ids=lambda value: "" if isinstance(value, int) and value > 10**9 else None,
)
def test_a_value_out_of_range_is_refused(
    config: type, setting: str, value: Any, message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        config(**{setting: value})
    assert message in str(refused.value)


def test_python_may_give_plain_values() -> None:
    assert PPOConfig(lr=1) == PPOConfig(lr=Schedule.constant(1.0))  # type: ignore[arg-type]
    assert NetConfig(hidden=[8, 8]).hidden == (8, 8)  # type: ignore[arg-type]
    assert isinstance(TrainConfig(minutes=3).minutes, float)
    assert TrainConfig(device="cuda:1").device == "cuda:1"
    found = TrainConfig(seed=np.int64(3), minutes=np.float32(0.5))  # type: ignore[arg-type]
    assert (type(found.seed), found.seed, found.minutes) == (int, 3, 0.5)


@pytest.mark.few(7)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--ppo.max-grad-norm -0.5", "ppo.max_grad_norm -0.5 must be above 0"),
        ("--ppo.lr nan", "ppo.lr: nan"),
        ("--ppo.lr fast", "ppo.lr: 'fast' is not a schedule"),
        ("--ppo.lr 1e30", "ppo.lr 1e30 must be at most 1,000,000,000,000"),
        ("--ppo.lr 0:1,1e6:1e40", "ppo.lr 0:1,1e6:1e40 must be at most"),
        ("--minutes 1e30", "minutes 1e30 must be at most"),
        ("--minutes 5m", "--minutes: '5m' is not a number, such as 0.5 or 1e-3"),
        ("--decisions 1e15", "decisions 1000000000000000 must be at most 1,000,000,000,000"),
        ("--collect.games 64k", "--collect.games: '64k' is not a whole number, such as 1000"),
        ("--collect.games 1.5", "--collect.games: '1.5' is not a whole number"),
        ("--collect.games 1e999999999", "--collect.games: '1e999999999' is not a whole number"),
        ("--collect.steps 0", "collect.steps 0"),
        ("--minutes inf", "minutes inf"),
        ("--seed 12345678901234567890123", "seed 12345678901234567890123 must be"),
        ("--net.kind mpl", "did you mean 'mlp'?"),
    ],
)
def test_the_command_line_refuses_in_one_line_and_leaves_nothing(
    words: str,
    message: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    runs = tmp_path / "runs"
    assert main(["train", "tic_tac_toe", "--runs", str(runs), *words.split()]) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert message in line
    assert "Error parsing" not in line
    assert not runs.exists()


@pytest.mark.parametrize("word", ["1e3", "1_000", "1000", "1000.0", "10e2"])
def test_counts_are_read_as_people_write_them(word: str) -> None:
    (command,) = [one for one in COMMANDS if one.name == "arena"]
    config = read_options(command, ["--games", word, "--opening-plies", "1e1"])
    assert (config.games, config.opening_plies) == (1000, 10)
    (command,) = [one for one in COMMANDS if one.name == "play"]
    config = read_options(command, ["tic_tac_toe", "--seed", "9007199254740993"])
    assert config.seed == 9007199254740993, "no digit is lost in a float"
    assert read_options(command, ["tic_tac_toe", "--seed", "None"]).seed is None


def test_a_number_of_another_command_is_refused_in_our_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words in (["serve", "--port", "80a"], ["arena", "a", "b", "--opening-plies", "80a"]):
        assert main(words) == 2
        assert f"{words[-2]}: '80a' is not a whole number, such as" in capsys.readouterr().err


def test_files_may_write_counts_as_powers_of_ten() -> None:
    assert CollectConfig(games=1e3).games == 1000  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"collect.games needs a whole number, not 1.5"):
        CollectConfig(games=1.5)  # type: ignore[arg-type]


def test_the_help_names_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "tic_tac_toe", "--help-all"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "(at least 1; default: 256)" in shown
    assert "(above 0; default: 0.5)" in shown
    assert "(from 0 to 1; default: 1)" in shown
    assert "--net.kind MODULE:CLASS|mlp|residual|attention" in shown
    assert "--net.shared, --net.no-shared" in shown


def test_a_range_is_one_line_of_a_field() -> None:
    @dataclass(frozen=True)
    class Config(Checked, section="own"):
        tries: Annotated[int, at_least(2)] = 3

    assert Config(tries=2).tries == 2
    with pytest.raises(ConfigError, match=r"own\.tries 1 must be at least 2"):
        Config(tries=1)
    assert str(NumberRange(0.5, 1)) == "from 0.5 to 1"


def test_absurd_replay_ratios_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"replay.ratio .* must be at most 65,536"):
        ReplayConfig(ratio=1e9)
