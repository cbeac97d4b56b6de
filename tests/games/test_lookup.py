"""What a game has in its folder is found by its name, and only when it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sparring import game_names, new_state
from sparring.errors import ConfigError
from sparring.games.lookup import game_module
from sparring.games.rules import Rules
from sparring.games.terminal import Terminal
from sparring.training.planning.settings import with_preset


def test_parts_are_found_by_name() -> None:
    assert game_module("shogi") is not None
    assert game_module("shogi", "picture") is not None
    assert game_module("laser_hockey", "terminal") is None


@pytest.mark.parametrize("name", ["", "nothing", "rules", "CartPole-v1", "shogi.picture", "duel"])
@pytest.mark.parametrize("part", ["", "picture"])
def test_other_names_have_no_parts(name: str, part: str) -> None:
    assert game_module(name, part) is None


@pytest.mark.parametrize("name", ["x" * 300, "é" * 200, "a\0b", "\ud800", "", "../.."])
def test_a_name_that_no_file_can_have_is_no_game(name: str) -> None:
    with pytest.raises(ConfigError, match="no game called"):
        Rules(name)


@pytest.mark.parametrize("game", game_names())
def test_every_part_keeps_its_promise(game: str) -> None:
    picture, terminal = game_module(game, "picture"), game_module(game, "terminal")
    assert picture is None or picture.PICTURE
    assert terminal is None or issubclass(terminal.TERMINAL, Terminal)
    assert with_preset(game).game == game  # refuses settings that do not exist
    assert with_preset(game, gpu=True).game == game


def test_a_game_does_not_load_its_parts() -> None:
    asked = f"""
import importlib, sys
for game in {game_names()}:
    importlib.import_module(f"sparring.games.{{game}}")
loaded = [name for name in sys.modules if name.endswith((".picture", ".terminal", ".preset"))]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", asked], timeout=60, check=True)


def test_both_kinds_of_laser_hockey_are_shown_alike() -> None:
    shown = new_state("laser_hockey", seed=3).text()
    assert new_state("laser_hockey_discrete", seed=3).text() == shown
