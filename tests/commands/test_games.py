from __future__ import annotations

import json

import pytest

from sparring import Rules, game_names
from sparring.cli import main


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
