"""Mistakes on the command line of `sparring render` are told and leave no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.render_helpers import MATCH
from sparring.cli import main


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("", "PLAYERS"),
        (", --game laser_hockey", "no player given"),
        ("strong", "add --game"),
        ("strong --game laser_hocky", "did you mean 'laser_hockey'?"),
        ("strog --game laser_hockey", "did you mean 'strong'?"),
        ("strong,FOLDER/nobody --game laser_hockey", "no player"),
        ("FOLDER/nobody", "no player"),
        ("random --game duel", "no picture, only text: sparring play duel"),
        ("strong,weak,idle --game laser_hockey", "has 2 seats, not 3"),
        ("strong --game laser_hockey --against weak,idle", "has 2 seats, not 3"),
        ("strong,weak --game laser_hockey --against idle", "leave it out"),
        ("strong --game laser_hockey --set mode=HOCKEY", "mode='HOCKEY' is unknown"),
        ("strong --game laser_hockey --out FOLDER/game.avi", ".gif, .mp4, .svg or .png"),
        ("strong --game laser_hockey --out FOLDER/game", "has to end in"),
        ("strong --game laser_hockey --out FOLDER/no/game.gif", "no folder"),
        ("strong --game laser_hockey --width 201", "even number"),
        ("strong --game laser_hockey --width 20", "width 20 must be from 160 to 3840"),
        ("strong --game laser_hockey --episodes 0", "must be from 1 to 100"),
        ("strong --game laser_hockey --speed 0", "must be from 0.01 to 100"),
        ("strong --game laser_hockey --speed nan", "must be a finite number from 0.01 to 100"),
        ("strong --game laser_hockey --fps 60", "outside 1..50 of a .gif"),
        ("strong --game laser_hockey --still", "a .gif is a film"),
        ("strong --game laser_hockey --out FOLDER/a.svg --fps 20", "moves smoothly"),
        ("strong --game laser_hockey --out FOLDER/a.png --fps 20", "are for films"),
        ("strong --game laser_hockey --out FOLDER/a.png --episodes 2", "a still shows one game"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(
    words: str,
    hint: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["render", *words.replace("FOLDER", str(tmp_path)).split()]) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    assert hint in shown.err
    assert len(shown.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "game.gif").mkdir()
    assert main(["render", *MATCH, "--out", str(tmp_path / "game.gif")]) == 2
    assert "is a folder" in capfd.readouterr().err
