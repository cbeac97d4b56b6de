"""Shell completion: what a Tab shows, without starting Python."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from sparring.cli import main

ASK = """
source "$1"; shift
export PATH=
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_sparring
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert main(["completion", "bash"]) == 0
    file = tmp_path_factory.mktemp("bash") / "sparring.bash"
    file.write_text(text.getvalue())
    return file


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["tra"], ["train"]),
        (["train", "sku"], ["skull_king"]),
        (["train", "x", "--ppo.l"], ["--ppo.lr"]),
        (["train", "x", "--algo", "s"], ["sac"]),
        (["bench", "sc"], ["scaling"]),
        (["bench", "pool", "tic"], ["tic_tac_toe"]),
        (["help", "tun"], ["tune"]),
        (["resume", "fi"], ["first"]),
        (["eval", "la"], ["latest"]),
        (["ladder", "x", "--submit", "fi"], ["first"]),
        (["play", "kuhn"], ["kuhn_poker", "kuhn_poker_3"]),
        (["completion", "z"], ["zsh"]),
        (["train", "nothing"], []),
    ],
)
def test_a_tab_in_bash(typed: list[str], shown: list[str], script: Path, tmp_path: Path) -> None:
    (tmp_path / "runs" / "first").mkdir(parents=True)
    (tmp_path / "runs" / "first" / "config.toml").write_text("")
    bash = shutil.which("bash")
    assert bash
    words = [bash, "-c", ASK, "-", str(script), "sparring", *typed]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.split() == shown
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_the_same_words(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    for word in ("train", "skull_king", "ppo.lr", "scaling", "latest"):
        assert word in shown
    if program := shutil.which(shell):
        done = subprocess.run([program, "-n"], input=shown, text=True, check=False)
        assert done.returncode == 0


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "powershell"]) == 2
    assert "use bash, zsh or fish" in capsys.readouterr().err
