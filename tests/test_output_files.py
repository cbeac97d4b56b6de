"""Every command refuses what cannot be written before it works, by the name that was typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparring.cli import main
from sparring.errors import ConfigError
from sparring.output_files import check_file, check_folder

CLOSED = "/proc/self"
"""Nobody can make files there, not even root."""


def test_a_file_that_can_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    assert check_file(tmp_path / "x.png", "--out") == tmp_path / "x.png"
    assert check_file(tmp_path / "a" / "b" / "x.png", "--out", parents=True)
    assert check_folder(tmp_path / "a" / "b", "--out")
    assert not list(tmp_path.iterdir())
    (tmp_path / "old.png").write_text("old")
    check_file(tmp_path / "old.png", "--out")
    assert (tmp_path / "old.png").read_text() == "old"


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        (f"{CLOSED}/x.png", {}, f"--out {CLOSED}/x.png cannot be written: no file can be made in"),
        (f"{CLOSED}/a/x.png", {"parents": True}, "cannot be written: no file can be made in"),
        ("no/x.png", {}, "--out no/x.png cannot be written: there is no folder no; make it first"),
        ("folder", {}, "--out folder is a folder; give a file in it"),
        ("file", {"new": True}, "--out file is there already; give another name"),
        ("file/x.png", {"parents": True}, "file is no folder"),
        ("/dev/null", {}, "--out /dev/null is no file that could be replaced"),
        ("x.jpg", {"suffixes": (".png", ".html")}, "--out x.jpg has to end in .png or .html"),
        ("x" * 300, {}, "File name too long"),
        ("a\0b", {}, "cannot be written"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(
    name: str, options: dict[str, bool], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").touch()
    with pytest.raises(ConfigError) as wrong:
        check_file(name, "--out", **options)  # type: ignore[arg-type]
    assert told in str(wrong.value)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("export latest --onnx", "x.onnx"),
        ("export latest --html", "x.html"),
        ("render careful --game tic_tac_toe --out", "x.svg"),
        ("render careful --save x.json --out", "x.svg"),
        ("replay x.json --out", "x.svg"),
        ("replay x.json --out", "x.kif"),
        ("play tic_tac_toe --save", "x.json"),
        ("plot latest --out", "x.png"),
        ("plot latest --out", "folder"),
        ("plot latest --csv", "x.csv"),
        ("compare latest runs/other --out", "folder"),
        ("compare latest runs/other --out", "x.html"),
        ("league latest --out", "folder"),
        ("arena random careful --out", "folder"),
        ("arena random careful --save-games", "folder"),
        ("eval careful --save-games", "folder"),
        ("tune tic_tac_toe --out", "x.toml"),
        ("profile tic_tac_toe --out", "folder"),
        ("sweep sweep.toml --out", "folder"),
        ("bench pool tic_tac_toe --save", "x.json"),
        ("bench scaling tic_tac_toe --out", "folder"),
    ],
)
def test_every_command_looks_at_its_target_first(
    command: str,
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither the runs nor the files that these commands read are there: the target goes first."""
    monkeypatch.chdir(tmp_path)
    place = f"{CLOSED}/{option}"
    assert main([*command.split(), place]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{command.rsplit(maxsplit=1)[-1]} {place} cannot be written" in line
    assert not list(tmp_path.iterdir())
