"""CAGE-2 as people see it: maps that tell blue nothing it must not know, and play by name."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import sparring
from sparring.cli import main
from sparring.games.cage2 import HOSTS, action_id, read, text_view
from sparring.games.cage2.picture import BELIEF_FILL, map_svg

SVG = "{http://www.w3.org/2000/svg}"


def after(steps: int, **config: object) -> sparring.State:
    state = sparring.new_state("cage2", seed=4, config={"red": "B_LINE", **config})
    for _ in range(steps):
        state.apply(0)
    return state


def test_the_map_names_every_host_and_what_happened() -> None:
    state = after(15)
    text = text_view(state)
    assert all(host in text for host in HOSTS)
    assert "red B_line" in text and "red: impact Op_Server0: succeeded" in text
    assert "OTService: stopped" in text and "blue: Sleep" in text
    assert "privileged malware" in text
    state.apply(action_id("Restore Op_Server0"))
    assert "OTService: running, can no longer be stopped" in text_view(state)


def test_blue_sees_only_what_it_knows() -> None:
    """Two positions that look alike to blue have the same map for it, in text and as a drawing."""
    state = after(20, green=1)
    other = state.clone()
    other.resample_hidden(0, seed=1)
    assert text_view(state) != text_view(other)
    assert map_svg(state) != map_svg(other)
    assert text_view(state, 0) == text_view(other, 0) == state.text(0)
    assert map_svg(state, 0) == map_svg(other, 0)
    for word in ("B_line", "malware", "true:", "red:"):
        assert word not in text_view(state, 0) + map_svg(state, 0)


def test_the_drawing_is_well_formed_and_shows_beliefs() -> None:
    state = after(14, orders="DRAWN")
    drawing = ET.fromstring(map_svg(state))
    words = [element.text for element in drawing.iter(f"{SVG}text")]
    assert set(HOSTS) <= set(words)
    fills = [rect.get("fill") for rect in drawing.iter(f"{SVG}rect")]
    labels = read(state).labels
    assert fills.count(BELIEF_FILL["user"]) == labels.count("user") + 1  # and the legend
    arrows = [path for path in drawing.iter(f"{SVG}path") if path.get("marker-end")]
    assert len(arrows) == 1
    assert any(word and word.startswith("order: ") for word in words)


def test_decoys_are_on_the_map() -> None:
    state = after(0)
    state.apply(action_id("DecoyFemitter Enterprise1"))
    (line,) = [line for line in text_view(state, 0).splitlines() if "Enterprise1" in line][:1]
    assert line.split()[-1] == "21"
    assert "decoys: 21" in map_svg(state)


def play(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, *words: str
) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert main(["play", "cage2", "--seed", "3", *words]) == 0
    return capsys.readouterr().out


def test_a_person_plays_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = "restore user1\nrest op_s\nmonitor\nan user3\n?\nh\nu\nq\n"
    shown = play(monkeypatch, capsys, typed)
    for line in ("Restore User1: -1.0", "Restore Op_Server0: -1.0", "Analyse User3: "):
        assert line in shown
    assert "vreact would choose: " in shown
    assert "You defend 13 hosts" in shown and "Taken back." in shown
    assert "against ." not in shown


def test_ambiguous_and_impossible_actions_are_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = play(monkeypatch, capsys, "restore ent\n2\nrestore user9\nq\n")
    assert "1:Restore Enterprise0, 2:Restore Enterprise1" in shown
    assert "Restore Enterprise1: -1.0" in shown
    assert "This is not a choice" in shown


def test_the_end_uncovers_everything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    flags = ("--set", "max_steps=2", "--set", "red=MEANDER", "--set", "mask=1")
    shown = play(monkeypatch, capsys, "sleep\nsleep\n", *flags)
    assert "step limit: total 0.0 against Meander" in shown
    assert "Play it again: sparring play cage2 --seed 3 --set red=MEANDER" in shown
