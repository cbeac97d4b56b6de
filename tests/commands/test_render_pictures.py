"""Films of laser hockey show things where the game had them, and the score."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from commands.render_helpers import HOCKEY, MATCH, SVG, match, report
from sparring.draw.pictures.film import FilmFrame, GameFrames
from sparring.draw.pictures.svg import animate_svg, key_times, short
from sparring.games import laser_hockey
from sparring.games.laser_hockey.picture import FILM_VIEW, SEAT_COLORS
from sparring.games.picture import Circle, Film, ShapeGroup, ViewBox, picture_of


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
    view = ViewBox(0.0, 0.0, 10.0, 10.0)
    dot = Circle(at=(1.0, 0.0), radius=0.1)
    frames = [
        (
            ShapeGroup(
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


def test_a_frame_shows_rackets_and_puck_in_their_colors() -> None:
    episode = match()
    film = picture_of(episode.states[0].rules).film([episode])  # type: ignore[union-attr]
    for step in (0, 40, 90):
        at = laser_hockey.read(episode.states[step])
        image = GameFrames(film, [], 380).draw(FilmFrame(film.frames[step], 0, 1))
        scale = 380 / FILM_VIEW.width
        center_of_mass = 0.12
        for body, back, color in (
            (at.left, -center_of_mass, SEAT_COLORS[0]),
            (at.right, center_of_mass, SEAT_COLORS[1]),
            (at.puck, 0.0, "#000000"),
        ):
            x, y = body.x + back * np.cos(body.angle), body.y + back * np.sin(body.angle)
            place = (scale * (x - FILM_VIEW.left), scale * (FILM_VIEW.top - y))
            shown = image.getpixel((int(place[0]), int(place[1])))
            assert shown == tuple(bytes.fromhex(color[1:])), f"step {step}, {color}"


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
    assert key_times(line, 0.1) == [0, 49]
    bent = np.abs(line - 20)
    kept = key_times(bent, 0.1)
    assert {0, 20, 49} <= set(kept)
    assert len(kept) <= 6


def test_numbers_are_short() -> None:
    shown = [short(value) for value in (0.5, -0.5, 0.04, -0.04, 10.0, 100.26, -3.0)]
    assert shown == [".5", "-.5", "0", "0", "10", "100.3", "-3"]
    assert [short(value, 0) for value in (100.4, -0.2, 0.0)] == ["100", "0", "0"]
