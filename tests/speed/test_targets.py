"""What can be looked at, where a profile goes, and what is refused in one line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sparring.cli import main
from sparring.config import TrainConfig
from sparring.config.tools import ProfileConfig
from sparring.errors import ConfigError
from sparring.speed.report import FORMAT, choose_folder
from sparring.speed.sampling import NoNativeStacksError, SamplerError, error_of, permission_advice
from sparring.speed.target import find_profile_target, holder, read_change
from sparring.training.planning.settings import written
from sparring.training.records.run import Run


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run() -> Run:
    """A run that is not going on."""
    config = TrainConfig(game="tic_tac_toe", updates=5, threads=1)
    return Run.create(Path("runs"), "tic_tac_toe", "ppo", written(config), name="mine")


def test_options_reach_the_training() -> None:
    words = {"threads": 1, "device": "cpu", "change": ("ppo.minibatch=64", "net.hidden=[16,16]")}
    found = find_profile_target(ProfileConfig("tic_tac_toe", **words)).config  # type: ignore[arg-type]
    assert (found.game, found.threads, found.ppo.minibatch) == ("tic_tac_toe", 1, 64)
    assert found.net.hidden == (16, 16)
    kept = find_profile_target(ProfileConfig("skull_king", set=("num_players=3",))).config
    assert "num_players=3" in kept.set
    assert read_change("eval.against=random") == (["eval", "against"], "random")


def test_a_run_that_has_ended_lends_its_settings(run: Run) -> None:
    before = sorted(path.name for path in run.path.rglob("*"))
    target = find_profile_target(ProfileConfig("mi", change=("ppo.epochs=2",)))
    assert (target.name, target.run, target.config.ppo.epochs) == ("mine", None, 2)
    assert sorted(path.name for path in run.path.rglob("*")) == before


def test_a_run_that_goes_on_is_found_with_its_process(run: Run) -> None:
    with run.lock():
        target = find_profile_target(ProfileConfig("latest"))
        assert (target.run and target.run.absolute(), target.pid) == (run.path, os.getpid())
        with pytest.raises(ConfigError, match=r"--threads: .* is training with its settings"):
            find_profile_target(ProfileConfig("mine", threads=1))
        (run.path / ".lock").write_text("1 another-machine\n")
        with pytest.raises(ConfigError, match="being trained on another-machine"):
            holder(run.path)
        (run.path / ".lock").write_text("")
        with pytest.raises(ConfigError, match="names no process"):
            holder(run.path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tic_tac_to", "did you mean 'tic_tac_toe'"),
        ("tic_tac_toe --change ppo.minibatsh=3", "no setting 'minibatsh'"),
        ("tic_tac_toe --change minibatch", "key=value"),
        ("tic_tac_toe --change dqn.mode=x", "dqn"),
        ("tic_tac_toe --rate 5000", "rate"),
        ("tic_tac_toe --native maybe", "native"),
        ("tic_tac_toe --out full", "not a profile"),
        ("nothing.py:make", "nothing.py"),
        ("full", "not a run"),
    ],
)
def test_mistakes_are_one_line(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("full").mkdir()
    Path("full/diary.txt").write_text("mine")
    assert main(["profile", *words.split()]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == ["full"]


def test_a_profile_never_takes_anothers_place() -> None:
    assert choose_folder("", "tic_tac_toe") == Path("profile-tic_tac_toe")
    Path("profile-tic_tac_toe").mkdir()
    assert choose_folder("", "tic_tac_toe") == Path("profile-tic_tac_toe-2")
    old = Path("old")
    old.mkdir()
    (old / "profile.json").write_text(json.dumps({"format": FORMAT}))
    assert choose_folder("old", "x") == old
    (old / "notes.md").write_text("mine")
    with pytest.raises(ConfigError, match="not a profile"):
        choose_folder("old", "x")


def test_why_nothing_was_seen_is_said_with_what_to_do(tmp_path: Path) -> None:
    scope = tmp_path / "scope"
    scope.write_text("1\n")
    assert "ptrace_scope=0" in permission_advice(scope) or "container" in permission_advice(scope)
    denied = error_of("Error: Permission Denied: Try running again with elevated permissions\n")
    assert type(denied) is SamplerError
    assert "may not read" in str(denied)
    native = error_of("Error: Collecting stack traces from native extensions is not supported\n")
    assert type(native) is NoNativeStacksError
