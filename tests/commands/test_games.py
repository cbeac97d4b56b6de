from __future__ import annotations

import io
import json
import re
import sys

import pytest

from sparring import Rules, game_names
from sparring.cli import main
from sparring.commands.games import describe


def shown(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words.split()) == 0
    return capsys.readouterr().out


def test_all_games_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown("games", capsys).splitlines()
    assert [line.split()[0] for line in lines[1:]] == game_names()
    assert all(line == line.rstrip() for line in lines)
    listed = json.loads(shown("games --json", capsys))["games"]
    assert [game["game"] for game in listed] == game_names()


def test_a_game_shows_every_flag_block_bot_and_reward(capsys: pytest.CaptureFixture[str]) -> None:
    rules = Rules("skull_king")
    text = shown("games skull_king", capsys)
    for name in (*rules.config, *rules.bots, *rules.parts, *rules.roles, *rules.ends):
        assert name in text
    for block in rules.blocks:
        assert f"\n{block.name} " in text
    assert "SKULL_KING | RASCAL" in text


def test_features_are_listed_with_their_places(capsys: pytest.CaptureFixture[str]) -> None:
    rules = Rules("skull_king")
    lines = shown("games skull_king --features", capsys).splitlines()
    assert len(lines) == 1 + len(rules.features)
    index, *_, dtype, offset, divisor = lines[-1].split()
    last = rules.features[-1]
    assert (int(index), dtype) == (len(rules.features) - 1, last.dtype)
    assert (int(offset), float(divisor)) == (last.offset, last.divisor)
    listed = json.loads(shown("games skull_king --features --json", capsys))["features"]
    assert [feature["name"] for feature in listed] == [f.name for f in rules.features]


def test_actions_are_listed_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown("games skull_king --actions", capsys).splitlines()
    assert lines[1 + 85].split(maxsplit=1) == ["85", "Tigress as escape"]
    listed = json.loads(shown("games tic_tac_toe --actions --json", capsys))["action_names"]
    assert listed[:4] == ["a1", "b1", "c1", "a2"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.few(4)
@pytest.mark.parametrize("width", [40, 80, 100, 120, 200])
@pytest.mark.parametrize("words", ["games", "games skull_king"])
def test_tables_fit_the_terminal(width: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(words.split()) == 0
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    whole = set(re.findall(r"\w+", json.dumps([describe(Rules(n)) for n in game_names()])))
    broken = {w for line in lines[3:] for w in re.findall(r"\w{9,}", line)} - whole
    assert broken <= {"observation", "terminals"}
    if width in (40, 200):
        assert any("wider terminals also show" in line for line in lines) == (width == 40)


def test_a_pipe_gets_every_column(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    head = shown("games", capsys).splitlines()[0]
    assert head.split() == ["game", "title", "seats", "actions", "bytes", "features", "bots"]


@pytest.mark.parametrize("game", game_names())
def test_a_game_in_a_pipe_is_as_wide_as_a_page(
    game: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(f"games {game}", capsys).splitlines()
    assert max(map(len, lines)) <= 100
    words = " ".join(lines)
    assert all(word in words for f in Rules(game).fields.values() for word in (f.name, *f.words))
    assert not any(line.endswith(" ") for line in lines)
