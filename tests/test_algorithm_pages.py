"""The pages of algorithms: tables are those of the code, every metric that is logged is named."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sparring.cli import main

ROOT = Path(__file__).parents[1]


def test_tables_of_algorithms_are_those_of_the_code() -> None:
    script = ROOT / "scripts/algorithm_tables.py"
    stated = subprocess.run([sys.executable, script, "--check"], check=False)
    assert stated.returncode == 0, "docs/algorithms is old: python scripts/algorithm_tables.py"


TRAINED = {
    "ppo": ("ppo", ""),
    "dqn": ("dqn", "--replay.warmup 64"),
    "qrdqn": ("dqn", "--replay.warmup 64"),
    "pqn": ("dqn", "--algo dqn --dqn.mode rollouts"),
    "sac": ("sac", "--replay.warmup 64"),
    "redq": ("sac", "--replay.warmup 64 --replay.ratio 8"),
    "td3": ("sac", "--replay.warmup 64"),
    "gumbel": ("gumbel", ""),
}
"""Pages and options by algorithm."""


@pytest.mark.parametrize("algo", TRAINED)
def test_an_algorithms_page_names_every_metric_that_it_logs(
    algo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, options = TRAINED[algo]
    monkeypatch.chdir(tmp_path)
    game = "laser_hockey" if algo == "td3" else "tic_tac_toe"
    words = f"train {game} --updates 2 --collect.games 16 --collect.steps 16 --threads 1"
    words += f" --device cpu --eval.off --eval.final-games 2 --net.hidden 16 --name one {options}"
    words += "" if "--algo" in options else f" --algo {algo}"
    assert main(words.split()) == 0
    with closing(sqlite3.connect("runs/one/metrics.sqlite")) as kept:
        names = {name for (name,) in kept.execute("SELECT DISTINCT name FROM metrics")}
    logged = {name for name in names if name.startswith(("losses/", "learning/"))}
    shown = (ROOT / f"docs/algorithms/{page}.md").read_text()
    assert {name for name in logged if f"`{name}`" not in shown} == set()
