"""`sparring render`: every kind of file shows the game that was played."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from commands.render_helpers import BOARD, MATCH, SVG, report
from sparring import Rules, game_names
from sparring.cli import main
from sparring.games import laser_hockey
from sparring.games.laser_hockey.picture import BLINK_COUNT, BLINK_FRAMES, PAUSE
from sparring.games.lookup import game_module

FAKE_FFMPEG = """#!{python}
import sys
with open(sys.argv[-1], "wb") as file:
    file.write(" ".join(sys.argv[1:]).encode() + b"\\n" + sys.stdin.buffer.read())
"""


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Put a program called ffmpeg, and no other, where programs are looked for."""
    folder.mkdir()
    (folder / "ffmpeg").write_text(text)
    (folder / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize("words", [MATCH, BOARD], ids=["laser_hockey", "tic_tac_toe"])
@pytest.mark.parametrize("kind", ["GIF", "PNG"])
def test_pixels(
    words: list[str], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"game.{kind.lower()}"
    facts = report(capsys, out, *words)
    with Image.open(out) as image:
        assert image.format == kind
        assert image.width == 190
        assert getattr(image, "is_animated", False) == (kind == "GIF")
    assert bool(facts["frames"]) == (kind == "GIF")
    assert [file.name for file in tmp_path.iterdir()] == [out.name]


@pytest.mark.parametrize("words", [MATCH, BOARD], ids=["laser_hockey", "tic_tac_toe"])
@pytest.mark.parametrize("still", [False, True])
def test_svg_moves_unless_it_is_a_still(
    words: list[str], still: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "game.svg"
    report(capsys, out, *words, *(["--still"] if still else []))
    text = out.read_text("utf-8")
    assert ElementTree.fromstring(text).tag == f"{SVG}svg"
    assert ("<animate" in text) != still
    assert "careful" in text or "strong" in text


@pytest.mark.parametrize("out", ["a.svg", "a.png", "a.gif"])
def test_the_same_seed_gives_the_same_file(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, again, other = (tmp_path / f"{name}{out}" for name in "abc")
    report(capsys, first, *BOARD, "--seed", "1")
    report(capsys, again, *BOARD, "--seed", "1")
    report(capsys, other, *BOARD, "--seed", "2")
    assert first.read_bytes() == again.read_bytes()
    assert first.read_bytes() != other.read_bytes()


def test_a_film_has_a_frame_for_every_step_and_then_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = report(capsys, tmp_path / "game.svg", *MATCH)
    (episode,) = facts["episodes"]
    assert episode == {"steps": 144, "end": "goal", "scores": [1.0, -1.0]}
    assert facts["frames"] == 1 + 144 + 2 * BLINK_FRAMES * BLINK_COUNT + PAUSE
    assert facts["seconds"] == pytest.approx(facts["frames"] * laser_hockey.STEP_S)


def test_a_gif_takes_as_long_as_the_game(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "game.gif"
    for more, factor in ([], 1.0), (["--fps", "30", "--speed", "2"], 0.5):
        facts = report(capsys, out, *MATCH, *more)
        with Image.open(out) as image:
            total = 0
            for frame in range(image.n_frames):
                image.seek(frame)
                total += image.info["duration"]
        frames = 1 + 144 + 2 * BLINK_FRAMES * BLINK_COUNT + PAUSE
        assert total / 1000 == pytest.approx(factor * frames * laser_hockey.STEP_S, abs=0.05)
        assert total / 1000 == pytest.approx(facts["seconds"], abs=0.006)


@pytest.mark.parametrize("game", [g for g in game_names() if game_module(g, "picture")])
def test_every_game_with_a_picture_can_be_drawn(
    game: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    best = Rules(game).bots[-1]
    facts = report(capsys, tmp_path / "game.svg", best, "--game", game, "--still")
    assert facts["game"] == game
    assert facts["players"] == [best] * Rules(game).seats


def test_mp4_pixels_go_to_ffmpeg(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", monkeypatch, FAKE_FFMPEG.format(python=sys.executable))
    out = tmp_path / "game.mp4"
    facts = report(capsys, out, *MATCH, "--fps", "25")
    words, _, pixels = out.read_bytes().partition(b"\n")
    assert b"-s 190x178 -r 25 -i -" in words
    assert len(pixels) == round(facts["seconds"] * 25) * 190 * 178 * 3
    assert len(set(pixels)) > 50


def test_ffmpeg_that_fails_leaves_no_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", monkeypatch, "#!/bin/sh\necho 'no such codec' >&2\nexit 1\n")
    assert main(["render", *MATCH, "--out", str(tmp_path / "game.mp4")]) == 3
    assert "ffmpeg could not write the film: no such codec" in capfd.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["bin"]


def test_without_ffmpeg_it_says_what_to_do(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["render", *MATCH, "--out", str(tmp_path / "game.mp4")]) == 3
    assert "install ffmpeg, or use .gif" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_survives_a_failure(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "game.mp4"
    out.write_text("precious")
    program(tmp_path / "bin", monkeypatch, "#!/bin/sh\nexit 1\n")
    assert main(["render", *MATCH, "--out", str(out)]) == 3
    assert "exit code 1" in capfd.readouterr().err
    assert out.read_text() == "precious"
