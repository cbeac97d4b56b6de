"""Environments that end the program, leave its folder, fail for ever: the run stays whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
QUICK = [
    "--collect.games",
    "2",
    "--collect.steps",
    "8",
    "--net.hidden",
    "8",
    "--ppo.epochs",
    "1",
    "--ppo.minibatch",
    "8",
    "--threads",
    "1",
    "--no-tensorboard",
    "--eval.final-games",
    "4",
]
QUIET = ("--eval.off",)


def sparring(
    *words: str, cwd: Path, shell: str = "", **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command line as a person does. shell: what follows the command, such as >&-."""
    command = [sys.executable, "-m", "sparring", *words]
    if shell:
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
    path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


def train(
    factory: str, *words: str, cwd: Path, updates: int = 4, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Train on one of `hostile_envs` in a run called r."""
    game = ["train", f"hostile_envs:{factory}", "--name", "r", "--updates", str(updates)]
    return sparring(*game, *QUICK, *words, cwd=cwd, **options)


def complaint(ended: subprocess.CompletedProcess[str]) -> str:
    """The one line of a command that failed; nothing else may look like an error."""
    assert "Traceback" not in ended.stderr, ended.stderr
    lines = [line for line in ended.stderr.splitlines() if line.startswith("sparring: ")]
    found = [line for line in lines if not line.startswith("sparring: warning: ")]
    assert len(found) == 1, ended.stderr
    return found[0]


@pytest.mark.parametrize("closed", [">&- 2>&-", "<&- >&- 2>&-"])
def test_descriptors_that_are_closed_do_not_end_a_training(closed: str, tmp_path: Path) -> None:
    """Files of the run would get their numbers, and what is printed would go into these."""
    words = ["train", "tic_tac_toe", "--name", "r", "--updates", "2", "--eval.off"]
    ended = sparring(*words, *QUICK, cwd=tmp_path, shell=closed)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "runs/r/results.json").is_file()
