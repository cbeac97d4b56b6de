"""Environments of Gymnasium and PettingZoo by the names that people know them by."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

import sparring
from sparring import ids, trusted
from sparring.cli import main
from sparring.commands.shared.opening import open_command
from sparring.config.commands import CheckConfig
from sparring.config.tools import ProfileConfig, TuneConfig
from sparring.errors import ConfigError, UntrustedError
from sparring.factories import load_factory
from sparring.pools.custom import make_pool
from sparring.training.planning.settings import with_preset

QUICK = {
    "updates": 1,
    "threads": 1,
    "collect": {"games": 2, "steps": 8},
    "net": {"hidden": (8,)},
    "eval": {"off": True, "final_games": 2},
    "quiet": True,
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in the folder of the command that leaves a mark when it is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "tabletops"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    marked = f"open({str(tmp_path / 'mark')!r}, 'w').close()\n"
    (folder / "nim_v0.py").write_text(f"{marked}def env(): ...\n")
    (folder / "tag_v0.py").write_text(f"{marked}def env(): ...\ndef parallel_env(): ...\n")
    (folder / "plain.py").write_text(marked)
    return folder


@pytest.mark.parametrize(
    ("word", "factory"),
    [
        ("CartPole-v1", "gymnasium:CartPole-v1"),
        ("gym:CartPole-v1", "gymnasium:CartPole-v1"),
        ("gymnasium:CartPole-v1", "gymnasium:CartPole-v1"),
        ("ALE/Pong-v5", "gymnasium:ALE/Pong-v5"),
        ("ale_py:ALE/Pong-v5", "gymnasium:ale_py:ALE/Pong-v5"),
        ("tabletops.nim_v0", "tabletops.nim_v0:env"),
        ("tabletops.tag_v0", "tabletops.tag_v0:parallel_env"),
        ("skull_king", "skull_king"),
        ("my_env:make", "my_env:make"),
        ("my_env.py:make", "my_env.py:make"),
    ],
)
def test_names_become_factories_without_an_import(word: str, factory: str, package: Path) -> None:
    assert ids.to_factory(word) == factory
    assert not (package.parent / "mark").exists()


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("CartPol-v1", "is not a Gymnasium id; did you mean 'CartPole-v1'?"),
        ("CartPole", "Gymnasium has CartPole-v1"),
        ("cartpole", "Gymnasium has CartPole-v1"),
        ("connect_four_v3", "PettingZoo has pettingzoo.classic.connect_four_v3"),
        ("ALE/Pong-v5", "no installed package registers ALE/"),
        ("pettingzoo.classic.connect_for_v3", "did you mean pettingzoo.classic.connect_four_v3?"),
        ("pettingzoo.classic.connect_four_v3", "'pygame'; pip install 'pettingzoo[classic]'"),
        ("tabletops.plain", "neither env nor parallel_env"),
        ("nowhere.at_all", "no package called 'nowhere' is installed"),
    ],
)
def test_what_is_not_there_is_one_line(
    word: str,
    hint: str,
    package: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    assert main(["train", word]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert hint in line
    assert not (package.parent / "runs").exists()


def test_gymnasium_itself_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ConfigError, match=r"not installed; pip install 'sparring\[gymnasium\]'"):
        load_factory(ids.trust_typed("CartPole-v1"), "game")


@pytest.mark.parametrize(
    "game",
    [
        "tabletops.plain:Id-v0",
        "gymnasium:tabletops.plain:Id-v0",
        "tabletops.nim_v0",
        "MountainCar-v0",
    ],
)
def test_an_id_in_a_file_runs_nothing_that_was_not_named(
    game: str, package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("theirs.toml").write_text(f'game = "{game}"\n')
    with pytest.raises(UntrustedError, match="code that you have not named"):
        with_preset("", "theirs.toml")
    assert main(["train", "--config", "theirs.toml"]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not (package.parent / "mark").exists()


def test_the_code_behind_an_id_is_remembered(package: Path) -> None:
    assert trusted.fingerprint("gymnasium:CartPole-v1")
    before = trusted.fingerprint("gymnasium:tabletops.plain:Id-v0")
    assert before
    (package / "plain.py").write_text("changed = 1\n")
    assert trusted.fingerprint("gymnasium:tabletops.plain:Id-v0") != before
    assert not trusted.fingerprint("gymnasium:nowhere:Id-v0")


def test_continuous_actions_are_refused_by_dqn_and_fit_ppo(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert make_pool("Pendulum-v1", 1).rules.box == 1
    assert main(["train", "Pendulum-v1", "--algo", "dqn"]) == 2
    assert "use --algo sac" in capsys.readouterr().err
    assert with_preset(ids.trust_typed("Pendulum-v1")).algo == "ppo"


@pytest.mark.filterwarnings("ignore:CartPole-v1 cannot be saved")
def test_an_id_trains_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    agent = sparring.train("CartPole-v1", name="first", **QUICK)  # type: ignore[arg-type]
    assert agent.policy.rules.name == "CartPole-v1"
    kept = tomllib.loads((agent.run / "config.toml").read_text())
    assert kept["game"] == "gymnasium:CartPole-v1"
    assert sparring.resume("first", updates=2, quiet=True).ended == "done"


def test_commands_around_training_take_ids_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    factory = "gymnasium:CartPole-v1"
    assert open_command("check", CheckConfig("CartPole-v1")).game == factory
    assert open_command("tune", TuneConfig("CartPole-v1")).game == factory
    assert open_command("profile", ProfileConfig("CartPole-v1")).target == factory
    Path("CartPole-v1").mkdir()  # a run of that name goes first
    assert open_command("profile", ProfileConfig("CartPole-v1")).target == "CartPole-v1"
