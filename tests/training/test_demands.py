"""What a machine or an account cannot give is one line before a run, and nothing is left."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

import sparring
from sparring.cli import main
from sparring.errors import ConfigError

QUICK = "train tic_tac_toe --updates 1 --threads 1 --net.hidden 8 --eval.off --eval.final-games 8"
QUICK += " --collect.games 8 --collect.steps 8 --no-tensorboard"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--collect.games 1000000000000", "at most"),
        ("--collect.games 8 --collect.steps 100000000000", "are free; at most"),
        ("--net.hidden " + "8192 " * 63, "the network (net.hidden 8 8192 8192"),
        ("--net.kind residual --net.channels 1024 --net.blocks 128", "net.channels 1024"),
        ("--collect.slots 9", "collect.slots 9 must be at most collect.games, which is 8"),
        ("--collect.steps 1", "raise collect.steps"),
        ("--ppo.gamma-into 1 1", "needs one for each role: player"),
        ("--opponents self=0", "must be above 0"),
        ("--opponents self=1 random=-1", "the weight of 'random=-1' must be above 0"),
        ("--opponents self=nan", "must be above 0"),
        ("--opponents self=inf", "must be above 0"),
        ("--vary ppo.clip=-1,1 --population 2", "vary: ppo.clip -1 must be at least 0"),
        ("--runs {tmp}/file/runs", "is a file; choose another folder with --runs"),
        ("--runs {tmp}/file", "is a file; choose another folder with --runs"),
        ("--runs " + "x" * 300, "runs"),
        ("--wandb", "wandb"),
    ],
)
def test_what_cannot_be_is_one_line(
    words: str,
    hint: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "file").write_text("a file\n")
    assert main([*QUICK.split(), *words.format(tmp=tmp_path).split()]) == 2
    shown = capfd.readouterr()
    (line,) = shown.err.splitlines()
    assert hint in line
    assert [path.name for path in tmp_path.rglob("*") if path.name != "file"] == []


def test_wandb_without_a_login_is_refused_before_a_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that fails as wandb does without an account, found instead of the real one."""
    (tmp_path / "wandb.py").write_text("def init(**_):\n    raise ValueError('no network')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    runs = tmp_path / "runs"
    words = [*QUICK.split(), "--runs", str(runs), "--wandb"]
    assert main(words) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "run `wandb login` first" in line
    assert not runs.exists()
    login = tmp_path / ".netrc"
    login.write_text("machine api.wandb.ai\n  login user\n  password x\n")
    login.chmod(0o600)
    assert main(words) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "wandb cannot begin: no network" in line
    assert not runs.exists()


def test_a_foreign_folder_in_place_of_runs_is_one_error_in_python(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(sparring.ConfigError, match="is a file"):
        sparring.train("tic_tac_toe", updates=1, quiet=True, runs=str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("words", "shown"), [("train tic_tac_toe --help", b"--net.hidden"), (QUICK, b" +- ")]
)
def test_output_that_knows_only_ascii_gets_similar_characters(
    words: str, shown: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    assert main(words.split()) == 0
    sys.stdout.flush()
    assert shown in out.getvalue()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fleet": {"lockstep": True}}, "fleet.lockstep True.*add --actors N"),
        ({"env": {"groups": 3}}, "env.groups 3.*add --workers N"),
    ],
)
def test_settings_of_processes_that_are_not_there_are_refused(
    given: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        sparring.train("tic_tac_toe", updates=1, quiet=True, runs=str(tmp_path / "runs"), **given)
    assert not (tmp_path / "runs").exists()
