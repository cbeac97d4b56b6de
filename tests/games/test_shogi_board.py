"""The Shogi board as people see it: letters, kanji, SVG, and the table of `sparring play`."""

from __future__ import annotations

import io
import random
from typing import Any
from xml.etree import ElementTree

import pytest

from sparring import Rules
from sparring.cli import main
from sparring.games import shogi
from sparring.games.shogi.kanji import KANJI, kanji_text
from sparring.games.shogi.picture import board_svg
from sparring.games.shogi.terminal import PIECES, ShogiTerminal

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(words: str, typed: str) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert main(["play", *words.split()]) == 0
        return capsys.readouterr().out

    return run


def test_the_board_with_kanji() -> None:
    state = shogi.load_sfen()
    shogi.play(state, "7g7f", "3c3d", "8h2b+")
    assert kanji_text(state).splitlines() == [
        "move 4, White to move",
        "☖ なし",
        "  ９ ８ ７ ６ ５ ４ ３ ２ １",
        "+---------------------------+",
        "|v香v桂v銀v金v玉v金v銀v桂v香|一",
        "| ・v飛 ・ ・ ・ ・ ・ 馬 ・|二",
        "|v歩v歩v歩v歩v歩v歩 ・v歩v歩|三",
        "| ・ ・ ・ ・ ・ ・v歩 ・ ・|四",
        "| ・ ・ ・ ・ ・ ・ ・ ・ ・|五",
        "| ・ ・ 歩 ・ ・ ・ ・ ・ ・|六",
        "| 歩 歩 ・ 歩 歩 歩 歩 歩 歩|七",
        "| ・ ・ ・ ・ ・ ・ ・ 飛 ・|八",
        "| 香 桂 銀 金 玉 金 銀 桂 香|九",
        "+---------------------------+",
        "☗ 角",
    ]


def test_the_drawing_shows_every_piece() -> None:
    state = shogi.load_sfen("l3k3l/9/9/9/9/9/9/3+R5/4K4 b B2G12Prg 1")
    drawn = ElementTree.fromstring(board_svg(state))
    groups = drawn.findall(f"{SVG}g")
    signs = sorted(group.findtext(f"{SVG}text") or "" for group in groups)
    assert signs == sorted("香玉香龍玉角金歩飛金")
    turned = [g for g in groups if "rotate(180)" in g.attrib["transform"]]
    assert len(turned) == 5
    assert "12" in [text.text for text in drawn.findall(f"{SVG}text")]


def test_every_piece_has_a_sign_and_a_name() -> None:
    assert set(KANJI) == set(PIECES)
    assert len(set(KANJI.values())) == len(KANJI)


def test_a_person_can_type_any_move_of_any_position() -> None:
    draw = random.Random(5)
    state = shogi.load_sfen()
    table = ShogiTerminal(Rules("shogi"), 0)
    while not state.over and shogi.read_sfen(state).split()[-1] != "120":
        choices = table.choices(state)
        assert sorted(choice.action for choice in choices) == state.legal()
        for choice in choices:
            assert table.match(state, choice.short.lower(), choices) == [choice]
        state.apply(draw.choice(choices).action)


def test_at_the_terminal(play: Any) -> None:
    shown = play("shogi --against greedy --seed 1", "7g7f\nv\nh\n99\nq\n")
    assert "pawn: 1g1f 2g2f" in shown
    assert "you (Black): 7g7f pawn" in shown
    assert "|v香v桂v銀" in shown
    assert "v  the board with kanji" in shown
    assert "This is not a choice" in shown


def test_a_game_is_played_to_its_end(play: Any) -> None:
    shown = play("shogi --against random --set max_plies=1", "7g7f\n")
    assert "ply limit: a draw" in shown
