"""Which run is meant by what a user types, in every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparring.errors import ConfigError
from sparring.store.folders import CHECKPOINTS, CONFIG
from sparring.store.lookup import find_run, locate


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name / CHECKPOINTS).mkdir(parents=True)
        (root / name / CONFIG).write_text("game = 'tic_tac_toe'\n")


def test_a_whole_name_is_meant_also_where_others_begin_with_it(tmp_path: Path) -> None:
    make(tmp_path, "fast", "fast-2", "faster")
    assert find_run("fast", tmp_path) == tmp_path / "fast"
    assert find_run("faste", tmp_path) == tmp_path / "faster"
    with pytest.raises(ConfigError, match="3 runs begin with 'fas'"):
        find_run("fas", tmp_path)


def test_agents_are_found_by_the_beginning_of_their_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("runs"), "first-run", "second-a", "second-b")
    assert locate("first") == Path("runs/first-run")
    assert locate("runs/first") == Path("runs/first-run")
    assert locate("captain") is None
    with pytest.raises(ConfigError, match="2 runs begin with 'second'"):
        locate("second")
