"""Every algorithm has settings and presets of its own; those of another are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomlkit

import sparring
from sparring.cli import find, main, read_options
from sparring.config import (
    DQNConfig,
    GumbelConfig,
    PPOConfig,
    QRDQNConfig,
    REDQConfig,
    ReplayConfig,
    SACConfig,
    TD3Config,
    TrainConfig,
)
from sparring.games.rules import Rules, game_names
from sparring.nets.sizes import num_parameters
from sparring.training.planning.algorithms import SECTIONS, check_custom_settings
from sparring.training.planning.checks import check_settings, learned_numbers
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import (
    check_same,
    members_of,
    merged,
    read_config,
    with_preset,
    written,
)

USUAL: dict[str, Any] = {
    "ppo": PPOConfig(),
    "dqn": DQNConfig(),
    "sac": SACConfig(),
    "qrdqn": QRDQNConfig(),
    "redq": REDQConfig(),
    "td3": TD3Config(),
    "gumbel": GumbelConfig(),
    "replay": ReplayConfig(),
}


def options(line: str) -> TrainConfig:
    """What `sparring train` reads from a command line."""
    config = read_options(*find(["train", *line.split()]))
    assert isinstance(config, TrainConfig)
    return config


@pytest.mark.few(60)
@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("algo", [*SECTIONS, "somebody:learner"])
@pytest.mark.parametrize("game", game_names())
def test_presets_set_nothing_of_another_algorithm(game: str, algo: str, gpu: bool) -> None:
    config = with_preset(game, algo=algo, gpu=gpu)
    assert config.algo == algo
    check_custom_settings(config)
    for section, usual in USUAL.items():
        if section not in SECTIONS.get(algo, ()):
            assert getattr(config, section) == usual


def test_presets_follow_the_algorithm() -> None:
    ppo, dqn = with_preset("skull_king"), with_preset("skull_king", algo="dqn")
    assert ppo.ppo.gamma_into == dqn.dqn.gamma_into == (0, 1)
    assert dqn.collect.games < ppo.collect.games
    assert dqn.opponents == ppo.opponents
    hockey = with_preset("laser_hockey", algo="sac").net
    assert (hockey.squash, hockey.std) == (True, "predicted")
    assert not with_preset("laser_hockey").net.squash
    assert not with_preset("laser_hockey_discrete", algo="sac").net.squash
    on_gpu = with_preset("laser_hockey", algo="sac", gpu=True)
    assert on_gpu.collect.games > 1000 < on_gpu.replay.batch


def test_rollouts_without_replay_like_what_ppo_likes() -> None:
    ppo = with_preset("skull_king")
    config = options("skull_king --algo dqn --dqn.mode rollouts")
    assert (config.collect, config.net.norm) == (ppo.collect, True)
    assert config.dqn.gamma_into == (0, 1)
    assert config.replay == ReplayConfig()
    assert options("skull_king --algo dqn").collect != ppo.collect


def test_the_command_line_goes_before_the_file_and_the_file_before_ppo(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('algo = "dqn"\n[dqn]\ntau = 0.01\n')
    assert options("tic_tac_toe").algo == "ppo"
    config = options(f"tic_tac_toe --config {file}")
    assert (config.algo, str(config.dqn.tau)) == ("dqn", "0.01")
    assert config.collect == with_preset("tic_tac_toe", algo="dqn").collect
    file.write_text('algo = "dqn"\n')
    config = options(f"tic_tac_toe --config {file} --algo sac")
    assert config == replace(with_preset("tic_tac_toe", algo="sac"), config=str(file))


REFUSED = [
    ("dqn", "ppo.lr", 1e-3, "ppo.lr: of PPO; the algorithm is dqn, which has dqn.lr"),
    ("dqn", "ppo.clip", 0.1, "ppo.clip: of PPO; the algorithm is dqn, which has dqn.* and replay"),
    (
        "ppo",
        "replay.ratio",
        4,
        "replay.ratio: of DQN, QRDQN, SAC, REDQ and TD3; the algorithm is ppo, which learns",
    ),
    ("sac", "dqn.tau", 0.005, "dqn.tau: of DQN; the algorithm is sac, which has sac.tau"),  # usual
    ("ppo", "sac.lr", 1e-3, "sac.lr: of SAC; the algorithm is ppo, which has ppo.lr"),
    ("gumbel", "ppo.lr", 1e-3, "ppo.lr: of PPO; the algorithm is gumbel, which has gumbel.lr"),
    ("a:b", "ppo.lr", 1e-3, "ppo.lr: of PPO; a:b is a custom learner"),
    ("dqn", "dqn.epochs", 3, "dqn.epochs: of dqn.mode rollouts; the mode is replay"),
]


@pytest.mark.parametrize(("algo", "name", "value", "says"), REFUSED)
def test_settings_of_another_algorithm_are_refused_however_they_are_given(
    algo: str,
    name: str,
    value: float,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs, (section, key) = tmp_path / "runs", name.split(".")
    line = f"train tic_tac_toe --algo {algo} --{name.replace('_', '-')} {value} --runs {runs}"
    assert main(line.split()) == 2
    assert f"sparring: {says}" in capsys.readouterr().err
    with pytest.raises(sparring.ConfigError) as wrong:
        settings: dict[str, Any] = {section: {key: value}, "runs": str(runs)}
        sparring.train("tic_tac_toe", algo=algo, quiet=True, **settings)
    assert f"train: {says}" in str(wrong.value)
    with pytest.raises(sparring.ConfigError) as wrong:
        members_of(TrainConfig(algo=algo, vary=(f"{name}=1",)))
    assert f"vary: {says}" in str(wrong.value)
    file = tmp_path / "settings.toml"
    file.write_text(f"[{section}]\n{key} = {value}\n")
    line = f"train tic_tac_toe --algo {algo} --config {file} --runs {runs}"
    if section != algo:  # what a mode does not have stands in every run's file
        assert main(line.split()) == 2
        assert f"sparring: {file}: {says}" in capsys.readouterr().err
    assert not runs.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "--dqn.mode rollouts --replay.ratio 2",
            "replay.ratio: of DQN, QRDQN, SAC, REDQ and TD3; dqn.mode rollouts",
        ),
        ("--dqn.mode rollouts --dqn.tau 1", "dqn.tau: of dqn.mode replay; the mode is rollouts"),
        ("--dqn.mode rollouts --dqn.no-double", "dqn.double: of dqn.mode replay; the mode is rol"),
    ],
)
def test_modes_refuse_what_they_do_not_have(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(f"train tic_tac_toe --algo dqn {words}".split()) == 2
    assert f"sparring: {says}" in capsys.readouterr().err


def test_a_whole_configuration_with_another_algorithms_settings_is_refused() -> None:
    config = replace(with_preset("tic_tac_toe", algo="sac"), dqn=DQNConfig(tau=0.5))
    with pytest.raises(sparring.ConfigError, match=r"dqn\.tau: of DQN; the algorithm is sac"):
        check_settings(Rules("tic_tac_toe"), config, {"": config.net})


def test_an_algorithm_is_not_varied() -> None:
    config = TrainConfig(vary=('algo="ppo","dqn"',))
    with pytest.raises(sparring.ConfigError, match=r"vary: algo: .* sparring compare"):
        members_of(config)


def test_continuous_actions_are_not_for_dqn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    assert main(f"train laser_hockey --algo dqn --runs {runs}".split()) == 2
    error = capsys.readouterr().err
    assert "laser_hockey needs a learner of continuous actions, and algo dqn is not one" in error
    assert "use --algo sac, or play laser_hockey_discrete" in error
    assert not runs.exists()


@pytest.mark.parametrize("algo", ["dqn", "sac"])
def test_discounts_by_role_are_one_for_each(algo: str) -> None:
    config = merged(with_preset("skull_king", algo=algo), {algo: {"gamma_into": (0, 1, 1)}}, "t")
    says = rf"{algo}\.gamma_into has 3 discounts; skull_king needs one for each role: manager"
    with pytest.raises(sparring.ConfigError, match=says):
        check_settings(Rules("skull_king"), config, {"": config.net})


def test_critics_and_targets_count_as_memory() -> None:
    rules = Rules("laser_hockey")
    sac = merged(with_preset("laser_hockey", algo="sac"), {"net": {"hidden": (64, 64)}}, "test")
    one, nets = num_parameters(rules, sac.net), {"": sac.net}
    assert learned_numbers(rules, replace(sac, algo="ppo"), nets) == 5 * one
    assert learned_numbers(rules, replace(sac, algo="dqn"), nets) == 6 * one
    assert learned_numbers(rules, sac, nets) > 16 * one
    wide = merged(sac, {"sac": {"critic_hidden": (8192,) * 30, "critic_norm": True}}, "test")
    with pytest.raises(sparring.ConfigError, match=r"sac\.critic_hidden 8192 8192.*make it small"):
        check_settings(rules, wide, {"": wide.net})


def test_critics_beside_a_network_of_your_own_are_counted_too() -> None:
    rules, own = Rules("laser_hockey"), {"kind": "own_nets:Plain", "set": ("width=8",)}
    sac = merged(with_preset("laser_hockey", algo="sac"), {"net": own}, "test")
    fewer = learned_numbers(rules, replace(sac, algo="ppo"), {"": sac.net})
    assert learned_numbers(rules, sac, {"": sac.net}) > fewer


def test_a_runs_file_holds_its_own_algorithm_and_can_be_used_again(tmp_path: Path) -> None:
    for algo, sections in SECTIONS.items():
        config = with_preset("tic_tac_toe", algo=algo)
        table = written(config)
        assert {name for name in USUAL if name in table} == set(sections)
        assert read_config(table, "test") == config
        check_same(table, written(read_config(table, "test")))
        file = tmp_path / f"{algo}.toml"
        file.write_text(tomlkit.dumps(table))
        assert replace(with_preset("", str(file)), config="") == config


def test_runs_of_before_go_on() -> None:
    """Their files know neither mirror nor norm."""
    table = written(with_preset("tic_tac_toe"))
    del table["net"]["norm"], table["collect"]["mirror"]
    config = read_config(table, "old")
    assert config == with_preset("tic_tac_toe")
    check_same(written(config), written(read_config(table, "old")))


def test_a_divergence_lowers_every_rate_of_the_algorithm() -> None:
    (sac,) = resolve([with_preset("tic_tac_toe", algo="sac")], lr_factor=0.1).settings
    assert [str(rate) for rate in (sac.lr, sac.critic_lr, sac.temperature_lr)] == ["0.0001"] * 3
    (dqn,) = resolve([with_preset("tic_tac_toe", algo="dqn")], lr_factor=0.1).settings
    assert str(dqn.lr) == "0%:0.0001,100%:1e-05"
