"""`sparring ladder GAME --crown RUN`: only who is shown to be stronger becomes the champion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sparring
from sparring.cli import main
from sparring.commands.shared.crown import crown
from sparring.games.rules import Rules
from sparring.league import championship
from sparring.league.duel import play_duel
from sparring.league.intervals import Sprt
from sparring.store import champions
from sparring.store.champions import champion_games, champion_of
from sparring.store.policies import save_policy
from sparring.training.recipe import recipe_of

GAME = "tic_tac_toe"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one update and of thirty."""
    folder = tmp_path_factory.mktemp("crown")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, updates in (("weak", 1), ("strong", 30)):
            settings: dict[str, Any] = {"threads": 1, "seed": 1, "quiet": True}
            sparring.train(GAME, name=name, updates=updates, eval={"off": True}, **settings)
    return folder


@pytest.fixture
def zoo(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(trained)
    monkeypatch.setattr(champions, "ZOO", tmp_path / "zoo")
    monkeypatch.setattr(championship, "GAMES", {10**9: (64, 8)})
    return tmp_path / "zoo"


def plant(name: str) -> str:
    """Make a run the champion without asking anybody; return its hash."""
    champion = crown(sparring.load(name), recipe_of(Path("runs") / name))
    return str(champion.entry["sha256"])


def test_a_stronger_one_is_crowned_and_a_weaker_one_is_not(
    zoo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = plant("weak")
    file = str(tmp_path / "cup.json")
    quick = [GAME, "--file", file, "--games", "64", "--threads", "1", "--json"]
    assert main(["ladder", *quick]) == 0
    rows = json.loads(capsys.readouterr().out)["ratings"]
    assert {row["player"]: row["kind"] for row in rows}["champion"] == "champion"
    assert main(["ladder", GAME, "--crown", "strong", "--threads", "1"]) == 0
    shown = capsys.readouterr().out
    assert "is the champion of tic_tac_toe now: won " in shown and "it is stronger" in shown
    crowned = champion_of(GAME)
    assert crowned.entry["sha256"] != before
    assert [past["sha256"] for past in crowned.entry["past"]] == [before]
    assert crowned.recipe["command"].startswith("sparring train tic_tac_toe --updates 30")
    # On the ladder the one before is a past champion, which keeps its results.
    assert main(["ladder", *quick]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["player"]: row["there"] for row in found["ratings"]}
    assert rows["champion"] and rows[f"champion-{before[:12]}"] is False
    assert main(["ladder", GAME, "--crown", "weak", "--threads", "1"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert "weak/1 does not become the champion of tic_tac_toe: won " in line
    assert "against champion, where equals win 50.0%: it is not stronger" in line
    assert champion_of(GAME).entry == crowned.entry


def test_without_a_champion_the_strongest_bot_has_to_be_beaten(
    zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ladder", GAME, "--crown", "weak", "--json", "--threads", "1"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["holder"], found["crowned"], found["verdict"]) == ("careful", False, "weaker")
    assert champion_games() == []


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("careful", "--crown careful is no run"),
        ("strong@64", "leave @64 out"),
        ("copy", "is of no run, and a champion has the recipe"),
        ("weka", "no player 'weka'"),
        ("strong --submit weak", "do not go together"),
    ],
)
def test_who_cannot_be_a_champion_is_told_before_a_game(
    word: str, told: str, zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if word == "copy":
        save_policy(sparring.load("strong"), "copy")
    assert main(["ladder", GAME, "--crown", *word.split()]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel"])
def test_a_duel_is_fair_with_any_number_of_seats(game: str) -> None:
    """Copies of one player share the wins, whether the seats can be halved or not."""
    rules = Rules(game)
    sprt = Sprt(0.0, 10.0)
    same = play_duel(rules, rules.bots[-1], rules.bots[-1], games=600, sprt=sprt)
    assert same.interval[0] < 0.5 < same.interval[1]
    assert same.verdict != "stronger"
    stronger = play_duel(rules, rules.bots[-1], "random", games=4000, sprt=sprt)
    assert stronger.verdict == "stronger" and stronger.share > 0.8 and stronger.games < 1000
