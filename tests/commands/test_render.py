"""`sparring render`: every kind of file shows the game that was played."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from sparring import Rules, game_names
from sparring.cli import main
from sparring.commands import render
from sparring.config import NetConfig, RenderConfig
from sparring.draw.pictures.film import Shot, Studio
from sparring.draw.pictures.svg import animate_svg, flip_through, needed, short
from sparring.errors import ConfigError, SparringError
from sparring.games import laser_hockey
from sparring.games.laser_hockey.picture import BLINK, BLINKS, FILM_VIEW, PAUSE, SEAT
from sparring.games.parts import part_of
from sparring.games.picture import (
    Circle,
    Episode,
    Film,
    Group,
    SvgPicture,
    View,
    picture_of,
)
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.store.policies import save_policy

HOCKEY = ["strong,weak", "--game", "laser_hockey", "--width", "190"]
MATCH = [*HOCKEY, "--seed", "11"]
BOARD = ["careful,random", "--game", "tic_tac_toe", "--width", "190"]
SVG = "{http://www.w3.org/2000/svg}"
FAKE_FFMPEG = """#!{python}
import sys
with open(sys.argv[-1], "wb") as file:
    file.write(" ".join(sys.argv[1:]).encode() + b"\\n" + sys.stdin.buffer.read())
"""


def report(capsys: pytest.CaptureFixture[str], out: Path, *words: str) -> dict[str, Any]:
    assert main(["render", *words, "--out", str(out), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["bytes"] == out.stat().st_size
    return found


def match(seed: int = 11, **flags: Any) -> Episode:
    rules = Rules("laser_hockey", flags)
    states = list(render.play_one(rules, ["strong", "weak"], seed, sampled=False))
    return Episode(states, ("strong", "weak"), (0, 0))


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
    assert facts["frames"] == 1 + 144 + 2 * BLINK * BLINKS + PAUSE
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
        frames = 1 + 144 + 2 * BLINK * BLINKS + PAUSE
        assert total / 1000 == pytest.approx(factor * frames * laser_hockey.STEP_S, abs=0.05)
        assert total / 1000 == pytest.approx(facts["seconds"], abs=0.006)


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


def track(element: ElementTree.Element, kind: str, frames: int) -> np.ndarray:
    """Return what an animation says about every frame."""
    (found,) = [a for a in element if a.get("type", a.get("attributeName")) == kind]
    times = [float(t) for t in found.attrib["keyTimes"].split(";")]
    values = [[float(v) for v in one.split(",")] for one in found.attrib["values"].split(";")]
    assert times[0] == 0
    assert times[-1] == 1
    at = np.arange(frames) / frames
    return np.column_stack([np.interp(at, times, column) for column in np.transpose(values)])


def test_in_an_svg_things_are_where_the_game_had_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "game.svg"
    frames = report(capsys, out, *MATCH)["frames"]
    places = [laser_hockey.read(state) for state in match().states]
    groups = [g for g in ElementTree.parse(out).getroot() if g.tag == f"{SVG}g"]
    scale = 190 / FILM_VIEW.width
    for group, name in zip(groups, ("left", "right", "puck"), strict=True):
        bodies = [getattr(place, name) for place in places]
        found = track(group, "translate", frames)[: len(bodies)]
        wanted = [(b.x - FILM_VIEW.left, FILM_VIEW.top - b.y) for b in bodies]
        assert np.abs(found - scale * np.array(wanted)).max() < 0.6
        if name != "puck":
            angles = track(group, "rotate", frames)[: len(bodies), 0]
            assert np.abs(angles + np.degrees([b.angle for b in bodies])).max() < 0.6


@pytest.mark.parametrize("moves", ["place", "angle", "neither"])
def test_a_turned_group_stays_turned_while_it_moves(moves: str) -> None:
    view = View(0.0, 0.0, 10.0, 10.0)
    dot = Circle(at=(1.0, 0.0), radius=0.1)
    frames = [
        (
            Group(
                key="it",
                parts=(dot,),
                at=(2.0 + step if moves == "place" else 2.0, 3.0),
                angle=0.5 + 0.1 * step if moves == "angle" else 0.5,
            ),
        )
        for step in range(5)
    ]
    document = ElementTree.fromstring(animate_svg(Film(view, (), frames, 1.0), 100, 5.0))
    group = document.find(f"{SVG}g")
    assert group is not None
    kinds = [part.attrib["type"] for part in group if part.tag == f"{SVG}animateTransform"]
    if moves == "neither":
        assert kinds == []
        assert group.attrib["transform"] == "translate(20,70) rotate(-28.6)"
        return
    assert kinds == ["translate", "rotate"]  # the first replaces, the second adds to it
    at, angle = (track(group, kind, 5) for kind in kinds)
    shapes = [frame[0] for frame in frames]
    assert np.abs(at - [(10 * s.at[0], 100 - 10 * s.at[1]) for s in shapes]).max() < 0.6
    assert np.abs(angle[:, 0] + np.degrees([s.angle for s in shapes])).max() < 0.6


def test_svg_animations_are_well_formed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "game.svg"
    facts = report(capsys, out, *MATCH, "--episodes", "2", "--speed", "0.5")
    animations = [e for e in ElementTree.parse(out).iter() if e.tag.startswith(f"{SVG}animate")]
    assert len(animations) > 20
    for one in animations:
        times = [float(t) for t in one.attrib["keyTimes"].split(";")]
        assert len(times) == len(one.attrib["values"].split(";"))
        assert times == sorted(times)
        assert times[0] == 0
        assert times[-1] == 1 or one.get("calcMode") == "discrete"
        assert one.attrib["dur"] == f"{short(facts['seconds'], 3)}s"


def test_a_frame_shows_rackets_and_puck_in_their_colours() -> None:
    episode = match()
    film = picture_of(episode.states[0].rules).film([episode])  # type: ignore[union-attr]
    for step in (0, 40, 90):
        at = laser_hockey.read(episode.states[step])
        image = Studio(film, [], 380).draw(Shot(film.frames[step], 0, 1))
        scale = 380 / FILM_VIEW.width
        centre_of_mass = 0.12
        for body, back, colour in (
            (at.left, -centre_of_mass, SEAT[0]),
            (at.right, centre_of_mass, SEAT[1]),
            (at.puck, 0.0, "#000000"),
        ):
            x, y = body.x + back * np.cos(body.angle), body.y + back * np.sin(body.angle)
            place = (scale * (x - FILM_VIEW.left), scale * (FILM_VIEW.top - y))
            shown = image.getpixel((int(place[0]), int(place[1])))
            assert shown == tuple(bytes.fromhex(colour[1:])), f"step {step}, {colour}"


def test_the_score_counts_over_episodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "game.svg"
    facts = report(capsys, out, *HOCKEY, "--seed", "4", "--episodes", "2")
    assert [episode["scores"][1] for episode in facts["episodes"]] == [1.0, 1.0]
    scores = re.findall(r">(\d : \d)<", out.read_text("utf-8"))
    assert sorted(scores) == ["0 : 0", "0 : 1", "0 : 2"]


def test_a_match_without_a_goal_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "game.svg"
    facts = report(capsys, out, *HOCKEY, "--seed", "1", "--set", "keep_mode=0")
    assert facts["episodes"] == [{"steps": 251, "end": "time limit", "scores": [0, 0]}]
    assert facts["flags"] == {"keep_mode": 0}
    assert "Time is up" in out.read_text("utf-8")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    rules = Rules("laser_hockey")
    net = Perceptron(rules, NetConfig(hidden=(16, 16)))
    torch.nn.init.normal_(net.policy_head.weight)
    return save_policy(Policy(rules, net), tmp_path_factory.mktemp("policies") / "mine")


def test_a_policy_plays_the_best_bot_unless_told(
    policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "game.png"
    quick = ["--set", "mode=TRAIN_SHOOTING"]
    assert report(capsys, out, str(policy), *quick)["players"] == [str(policy), "strong"]
    weak = report(capsys, out, str(policy), "--against", "weak", *quick)
    assert weak["players"] == [str(policy), "weak"]
    swapped = report(capsys, out, f"weak,{policy}", *quick)
    assert swapped["players"] == ["weak", str(policy)]
    assert swapped["game"] == "laser_hockey"


def test_the_flags_are_those_of_the_training_wherever_the_policy_sits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = Rules("laser_hockey", {"mode": "TRAIN_SHOOTING", "scale_observation": 1})
    trained = {"mode": "TRAIN_SHOOTING", "scale_observation": 1}
    net = Perceptron(rules, NetConfig(hidden=(16, 16)))
    mine = str(save_policy(Policy(rules, net), tmp_path / "mine"))
    out = tmp_path / "game.png"
    for words, players in (
        ([mine], [mine, "strong"]),
        (["weak", "--against", mine], ["weak", mine]),
        (["weak", "--against", mine, "--game", "laser_hockey"], ["weak", mine]),
        ([f"bot:weak,{mine}"], ["weak", mine]),
        ([mine, "--against", "bot:weak"], [mine, "weak"]),
    ):
        facts = report(capsys, out, *words)
        assert (facts["players"], facts["flags"]) == (players, trained), words
    facts = report(capsys, out, "weak", "--against", mine, "--set", "mode=TRAIN_DEFENSE")
    assert facts["flags"] == {**trained, "mode": "TRAIN_DEFENSE"}
    facts = report(capsys, out, "bot:weak", "--game", "laser_hockey", "--set", "keep_mode=0")
    assert (facts["players"], facts["flags"]) == (["weak", "strong"], {"keep_mode": 0})


def test_two_copies_of_a_policy_draw_for_themselves(tmp_path: Path) -> None:
    """A policy that wants nothing anywhere: whatever differs between the seats was drawn."""
    rules = Rules("laser_hockey")
    net = Perceptron(rules, NetConfig(hidden=(16, 16)))
    torch.nn.init.zeros_(net.policy_head.weight)
    torch.nn.init.zeros_(net.policy_head.bias)
    folder = save_policy(Policy(rules, net), tmp_path / "mine")
    config = RenderConfig(players=f"{folder},{folder}", out="game.svg")
    rules, players = render.find_players(config)
    assert players[0] is players[1]

    def spins(sampled: bool) -> np.ndarray:
        states = render.play_one(rules, players, 3, sampled=sampled)
        places = [laser_hockey.read(state) for state, _ in zip(states, range(6), strict=False)]
        return np.array([(at.left.spin, at.right.spin) for at in places])

    assert (spins(False) == 0).all()
    left, right = spins(True)[1:].T
    assert (left != 0).all() and (right != 0).all()
    assert not np.isclose(left, right).any()
    assert np.diff(left).min() < 0 < np.diff(left).max()  # and every step draws anew


def test_bots_alone_need_no_learning_library(tmp_path: Path) -> None:
    words = ["render", *BOARD, "--out", str(tmp_path / "game.gif")]
    asked = f"""
import sys
from sparring.cli import main
main({words!r})
sys.exit("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"game.gif: " in done.stdout


def pages(state: Any) -> str:
    shown = str(state).split("\n")[0]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>{shown}</text></svg>'
    )


@pytest.mark.parametrize("still", [False, True])
def test_a_game_may_bring_its_own_documents(still: bool, tmp_path: Path) -> None:
    rules = Rules("tic_tac_toe")
    states = list(render.play_one(rules, ["careful", "careful"], 0, sampled=False))
    episode = Episode(states, ("careful", "careful"), (0, 0))
    config = RenderConfig(players="careful", out="game.svg", still=still)
    facts = render.draw(SvgPicture(pages, 0.5), [episode], config, tmp_path / "game.svg")
    text = (tmp_path / "game.svg").read_text("utf-8")
    if still:
        assert text == pages(states[-1])
        return
    assert facts == {"frames": 10, "seconds": 5.0}
    shown = [group[0].attrib for group in ElementTree.fromstring(text)]
    assert [attributes["keyTimes"] for attributes in shown[:3]] == ["0;.1", "0;.1;.2", "0;.2;.3"]
    assert [attributes["values"] for attributes in shown[-1:]] == ["none;inline"]


def test_documents_are_svg_of_their_own_size(tmp_path: Path) -> None:
    rules = Rules("tic_tac_toe")
    for wrong, hint in (
        ({"out": "a.gif"}, "--out a.svg"),
        ({"out": "a.svg", "width": 400}, "own size"),
    ):
        config = RenderConfig(players="careful", **wrong)
        with pytest.raises(ConfigError, match=hint):
            render.check_documents(config, rules, Path(config.out))


def test_a_page_that_is_no_svg_is_refused() -> None:
    with pytest.raises(SparringError, match="begin with <svg"):
        flip_through(["<html></html>"], 1.0)


@pytest.mark.parametrize("game", [game for game in game_names() if part_of(game, "picture")])
def test_every_game_with_a_picture_can_be_drawn(
    game: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    best = Rules(game).bots[-1]
    facts = report(capsys, tmp_path / "game.svg", best, "--game", game, "--still")
    assert facts["game"] == game
    assert facts["players"] == [best] * Rules(game).seats


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["vreact", "--game", "cage2", "--set", "max_steps=12", "--episodes", "2"], "Op_Server0"),
        (["greedy,random", "--game", "shogi", "--set", "max_plies=20", "--speed", "2"], "飛"),
    ],
    ids=["cage2", "shogi"],
)
def test_films_of_documents_show_every_position_in_turn(
    words: list[str], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "game.svg"
    facts = report(capsys, out, *words)
    pages = list(ElementTree.parse(out).getroot())
    steps = [episode["steps"] for episode in facts["episodes"]]
    assert len(pages) == facts["frames"] == sum(steps) + len(steps)
    assert min(steps) >= 12
    shown = []
    for page in pages:
        animation, document = page
        assert animation.attrib["dur"] == f"{short(facts['seconds'], 3)}s"
        assert document.tag == f"{SVG}svg"
        shown.append(ElementTree.tostring(document))
        assert name in "".join(document.itertext())
    assert all(one != after for one, after in pairwise(shown))
    starts = [
        float(page[0].attrib["keyTimes"].split(";")[values.index("inline")])
        for page in pages
        for values in [page[0].attrib["values"].split(";")]
    ]
    assert np.abs(np.array(starts) - np.arange(len(pages)) / len(pages)).max() < 1e-4
    assert [page.get("display") for page in pages] == [None] + ["none"] * (len(pages) - 1)


def test_what_comes_later_is_hidden_where_nothing_moves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "game.svg"
    report(capsys, out, *MATCH)
    texts = ElementTree.parse(out).findall(f"{SVG}text")
    shown = [text.text for text in texts if text.get("display") != "none"]
    assert shown == ["strong", "weak", "0 : 0", "5 s"]


def test_straight_ways_need_their_ends_alone() -> None:
    line = np.arange(50.0)[:, None] * (1.0, -2.0)
    assert needed(line, 0.1) == [0, 49]
    bent = np.abs(line - 20)
    kept = needed(bent, 0.1)
    assert {0, 20, 49} <= set(kept)
    assert len(kept) <= 6


def test_numbers_are_short() -> None:
    shown = [short(value) for value in (0.5, -0.5, 0.04, -0.04, 10.0, 100.26, -3.0)]
    assert shown == [".5", "-.5", "0", "0", "10", "100.3", "-3"]
    assert [short(value, 0) for value in (100.4, -0.2, 0.0)] == ["100", "0", "0"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("", "PLAYERS"),
        (", --game laser_hockey", "who plays?"),
        ("strong", "add --game"),
        ("strong --game laser_hocky", "did you mean 'laser_hockey'?"),
        ("strog --game laser_hockey", "did you mean 'strong'?"),
        ("strong,FOLDER/nobody --game laser_hockey", "neither a folder nor a bot"),
        ("FOLDER/nobody", "no folder"),
        ("captain --game skull_king", "no picture, only text: sparring play skull_king"),
        ("strong,weak,idle --game laser_hockey", "has 2 seats, not 3"),
        ("strong --game laser_hockey --against weak,idle", "has 2 seats, not 3"),
        ("strong,weak --game laser_hockey --against idle", "leave it out"),
        ("strong --game laser_hockey --set mode=HOCKEY", "mode='HOCKEY' is unknown"),
        ("strong --game laser_hockey --out FOLDER/game.avi", ".gif, .mp4, .svg or .png"),
        ("strong --game laser_hockey --out FOLDER/game", "has to end in"),
        ("strong --game laser_hockey --out FOLDER/no/game.gif", "no folder"),
        ("strong --game laser_hockey --width 201", "even number from 160"),
        ("strong --game laser_hockey --width 20", "even number from 160"),
        ("strong --game laser_hockey --episodes 0", "outside 1..100"),
        ("strong --game laser_hockey --speed 0", "outside 0.01..100"),
        ("strong --game laser_hockey --speed nan", "outside 0.01..100"),
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


def test_who_cannot_play_is_told_to_watch(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "laser_hockey"]) == 2
    assert "watch it: sparring render strong --game laser_hockey" in capfd.readouterr().err
    assert main(["play", str(policy)]) == 2
    assert f"watch it: sparring render {policy}" in capfd.readouterr().err


def test_a_folder_is_no_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "game.gif").mkdir()
    assert main(["render", *MATCH, "--out", str(tmp_path / "game.gif")]) == 2
    assert "is a folder" in capfd.readouterr().err


def test_a_policy_of_another_game_is_refused(
    policy: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "game.gif")
    assert main(["render", str(policy), "--game", "tic_tac_toe", "--out", out]) == 2
    assert "plays laser_hockey, not tic_tac_toe" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []
