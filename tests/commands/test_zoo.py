"""Champions: who they are, that they are what is stated, and that wrong files are refused."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sparring
from sparring.cli import main
from sparring.commands.shared.crown import crown
from sparring.errors import ConfigError, SparringError
from sparring.games.rules import Rules
from sparring.league.championship import measure
from sparring.store import champions
from sparring.store.champions import EXPLOITABILITY, MAX_WEIGHTS, ZOO, champion_games, champion_of
from sparring.store.lookup import find_player

GAME = "kuhn_poker"
ALL_BYTES = 12 * 2**20
RECIPE = {"command": "sparring train", "machine": "a table", "minutes": 1.0, "commit": "abc"}


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zoo of one champion that a test may change."""
    folder = tmp_path / "zoo"
    folder.mkdir()
    for file in ZOO.glob(f"{GAME}.*"):
        shutil.copy(file, folder)
    monkeypatch.setattr(champions, "ZOO", folder)
    return folder


@pytest.mark.parametrize("game", champion_games())
def test_a_champion_that_comes_along_loads_and_fits_its_game(game: str) -> None:
    champion = champion_of(game)
    policy = sparring.load(f"{game}:champion")
    policy.check_fits(policy.rules)
    assert policy.rules.name == game
    assert champion.weights.stat().st_size <= MAX_WEIGHTS
    assert champion.strength
    assert champion.recipe["command"].startswith(f"sparring train {game} ")


def test_all_champions_are_small() -> None:
    assert sum(file.stat().st_size for file in ZOO.iterdir()) <= ALL_BYTES


def test_a_champion_is_measured_as_stated(capsys: pytest.CaptureFixture[str], zoo: Path) -> None:
    assert main(["zoo", GAME, "--verify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agrees"]


def test_a_champion_that_is_weaker_than_stated_is_told(
    capsys: pytest.CaptureFixture[str], zoo: Path
) -> None:
    file = zoo / f"{GAME}.toml"
    stated = tomllib.loads(file.read_text())["strength"][-1]["value"]
    file.write_text(file.read_text().replace(str(stated), str(stated / 2)))
    assert main(["zoo", GAME, "--verify"]) == 1
    assert "1 of 4 measurements differ" in capsys.readouterr().out


def test_damaged_weights_are_refused(zoo: Path) -> None:
    file = zoo / f"{GAME}.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    with pytest.raises(SparringError, match="is damaged"):
        champion_of(GAME)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rules_version = 1", "rules_version = 99", "plays version 99 of its rules"),
        ("rules_version = 1", "", "describes no champion"),
        ("sha256", "md5", "describes no champion"),
        ("[recipe]", "[recipe", "describes no champion"),
    ],
)
def test_an_entry_that_does_not_fit_is_refused(zoo: Path, old: str, new: str, message: str) -> None:
    file = zoo / f"{GAME}.toml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(SparringError, match=message):
        champion_of(GAME)


def test_an_unknown_game_is_told_with_one_that_is_alike(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["zoo", "shogy"]) == 2
    assert "did you mean 'shogi'" in capsys.readouterr().err


def test_names_of_champions() -> None:
    rules = Rules(GAME)
    assert find_player("champion", rules).path == ZOO / f"{GAME}.safetensors"
    assert str(find_player("champion", rules).style) == "@sampled"
    assert str(find_player(f"{GAME}:champion@greedy").style) == "@greedy"
    for word, known, message in [
        ("champion", None, "name its game"),
        ("champion@level99", rules, "@level99 is unknown"),
        (f"{GAME}:champion", Rules("leduc_poker"), "is a player of kuhn_poker"),
        ("champion", Rules("goofspiel"), "goofspiel has no champion"),
    ]:
        with pytest.raises(ConfigError, match=message):
            find_player(word, known)


def test_a_crowned_policy_follows_the_old_champion(zoo: Path) -> None:
    policy = sparring.load(f"{GAME}:champion")
    before = champion_of(GAME).entry["sha256"]
    with_noise = policy.net.state_dict()
    for weights in with_noise.values():
        weights.add_(0.01)
    policy.net.load_state_dict(with_noise)
    crown(policy, RECIPE, plays="sampled")
    after = champion_of(GAME)
    assert after.entry["sha256"] != before
    assert [past["sha256"] for past in after.entry["past"]] == [before]


def test_a_demo_shows_a_game_and_names_what_comes_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", GAME, "--games", "32"]) == 0
    said = capsys.readouterr().out
    assert "champion: " in said
    assert "who has seat 1." in said
    assert "A game that it wins, seed 0." in said
    assert f"sparring play {GAME}" in said


def test_the_game_of_a_champion_is_that_of_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arena", "champion", "nash", "--games", "16", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["game"] == GAME


def test_the_page_states_what_the_entries_say() -> None:
    script = Path(__file__).parents[2] / "scripts" / "zoo_table.py"
    stated = subprocess.run([sys.executable, script, "--check"], check=False)
    assert stated.returncode == 0, "docs/guides/champions.md is old: python scripts/zoo_table.py"


@pytest.mark.slow
def test_a_recipe_reaches_its_strength(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (stated,) = (one for one in champion_of(GAME).strength if one["of"] == EXPLOITABILITY)
    command = shlex.split(champion_of(GAME).recipe["command"])
    assert main([*command[1:], "--name", "again"]) == 0
    found = measure(sparring.load("again"), Rules(GAME), [stated])
    assert found[0]["value"] < 0.01
