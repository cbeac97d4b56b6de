"""The ladder of Shogi players: who meets whom, what a match counts, and how Elo follows."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from sparring import Rules
from sparring.config import NetConfig
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.tools.usi.engine import Engine
from sparring.training.policies import save_policy

ROOT = Path(__file__).parents[1]
FAIRY = shutil.which("fairy-stockfish", path=f"{os.environ.get('PATH', '')}:/usr/games")
FAKE = f"{sys.executable} {ROOT / 'tests' / 'tools' / 'fake_usi_engine.py'}"


@pytest.fixture(scope="module")
def ladder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ladder", ROOT / "benchmarks" / "ladder.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def measured(ladder: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that measures and gives the record."""

    def measure(*words: str) -> Any:
        file = tmp_path / "ladder.json"
        assert ladder.main([*words, "--json", "--out", str(file)]) == 0
        record = json.loads(capsys.readouterr().out)
        assert record == json.loads(file.read_text())
        return record

    return measure


def match(ladder: ModuleType, one: str, two: str, wins: int, draws: int, losses: int) -> Any:
    return ladder.Pair(one, two, wins, draws, losses, 80.0, {}, 1.0)


def test_ratings_are_those_that_points_were_made_from(ladder: ModuleType) -> None:
    true = np.array([0.0, 120.0, -80.0, 400.0])
    games = 1e7 * (1 - np.eye(4))
    games[0, 3] = games[3, 0] = 0  # these two never met
    points = games / (1 + 10 ** ((true[None] - true[:, None]) / 400))
    np.testing.assert_allclose(ladder.fit(games, points), true, atol=0.01)


def test_draws_are_half_a_point_and_lost_matches_stay_finite(ladder: ModuleType) -> None:
    names = ["a", "b", "c"]
    pairs = [match(ladder, "a", "b", 0, 0, 40), match(ladder, "b", "c", 10, 20, 10)]
    rows = {row["player"]: row for row in ladder.rate(names, pairs, 0)}
    assert rows["a"]["elo"] == 0
    # Of the prior's draws this match has the one of a and one of b's two halves: 0.75 in the mean.
    assert rows["b"]["elo"] == pytest.approx(400 * np.log10(40.375 / 0.375), abs=0.1)
    assert rows["c"]["elo"] == pytest.approx(rows["b"]["elo"], abs=0.1)
    # 40 to 0 may well be luck, and says nothing about how far away b is.
    assert 300 < rows["b"]["low"] < 600
    assert rows["b"]["high"] > 1200
    assert (rows["b"]["games"], rows["b"]["score"]) == (80, 0.75)


def test_more_games_make_narrower_intervals_around_the_truth(ladder: ModuleType) -> None:
    widths = []
    for games in (40, 4000):
        share = round(0.6 * games)
        pairs = [match(ladder, "a", "b", games - share, 0, share)]
        row = {row["player"]: row for row in ladder.rate(["a", "b"], pairs, 0)}["b"]
        assert row["low"] < 400 * np.log10(0.6 / 0.4) < row["high"]
        widths.append(row["high"] - row["low"])
    assert row["low"] < row["elo"] < row["high"]
    # Standard errors of 60 % over 40 games are 56 Elo: an interval of about 220.
    assert widths[0] == pytest.approx(220, rel=0.15)
    assert widths[1] == pytest.approx(widths[0] / 10, rel=0.15)


def test_neighbours_meet_and_guests_meet_everybody(ladder: ModuleType) -> None:
    pairs = ladder.pairs_of(["a", "b", "c"], ["x", "y"], everybody=False)
    assert pairs[:2] == [("a", "b"), ("b", "c")]
    assert sorted(pairs[2:]) == sorted([(m, g) for m in "abc" for g in "xy"] + [("x", "y")])
    assert len(ladder.pairs_of(["a", "b", "c"], ["x"], everybody=True)) == 6


def test_stronger_bots_stand_higher(measured: Any) -> None:
    words = ("--ladder", "random,greedy,ab2", "mix:random,greedy,0.5", "--games", "12")
    record = measured(*words)
    order = ["ab2", "greedy", "mix:random,greedy,0.5", "random"]
    assert [row["player"] for row in record["players"]] == order
    assert record["players"][-1]["elo"] == 0
    assert len(record["pairs"]) == 2 + 3
    for pair in record["pairs"]:
        assert pair["wins"] + pair["draws"] + pair["losses"] == 12 == sum(pair["ends"].values())
        assert pair["plies"] > 10
    assert record["machine"]["cpu"]
    again = measured(*words)
    assert again["players"] == record["players"]
    assert measured(*words, "--seed", "1")["pairs"] != record["pairs"]


def test_colours_change_and_an_opening_is_played_with_both(ladder: ModuleType) -> None:
    rules = Rules("shogi")
    given = ladder.read_options(["--ladder", "random,greedy", "--opening-plies", "4"])
    tables = [ladder.sit_down(rules, number, given) for number in range(4)]
    assert [table.first for table in tables] == [0, 1, 0, 1]
    assert tables[0].opening == tables[1].opening != tables[2].opening
    for table in tables:
        assert len(table.moves) == 4
        table.give_up("resignation")  # the side to move, which is Black
    assert [table.score for table in tables] == [0.0, 1.0, 0.0, 1.0]


def test_mixes_move_as_often_as_they_should_like_each(ladder: ModuleType) -> None:
    class Counter:
        at_once = True

        def __init__(self) -> None:
            self.moves = 0

        def move(self, tables: Any) -> None:
            self.moves += len(tables)

    given = ladder.read_options(["--ladder", "random,greedy"])
    tables = [ladder.sit_down(Rules("shogi"), number, given) for number in range(400)]
    one, two = Counter(), Counter()
    ladder.Mix("mix", one, two, 0.25).move(tables)
    assert one.moves + two.moves == 400
    assert one.moves == pytest.approx(100, abs=35)  # four standard errors


def test_a_policy_takes_part(measured: Any, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    rules = Rules("shogi")
    net = make_net(rules, NetConfig(kind="residual", channels=8, blocks=1))
    path = str(save_policy(Policy(rules, net), tmp_path / "fresh"))
    record = measured("--ladder", "random,ab2", path, "--games", "4", "--set", "max_plies=120")
    assert {row["player"] for row in record["players"]} == {"random", "ab2", path}
    assert [(pair["one"], pair["two"]) for pair in record["pairs"]][-1] == ("ab2", path)
    assert record["pairs"][-1]["score"] >= 0.5  # a net that has learned nothing


@pytest.mark.parametrize(
    ("mode", "end"),
    [("illegal", "fault: illegal move"), ("crash", "fault: crash"), ("resign", "resignation")],
)
def test_an_engine_that_fails_loses_and_goes_on(ladder: ModuleType, mode: str, end: str) -> None:
    given = ladder.read_options(["--ladder", "random,greedy", "--games", "2"])
    with Engine(f"{FAKE} {mode}") as engine:
        players = (ladder.Usi(engine, "go nodes 1"), ladder.Bot("random"))
        pair = ladder.play_pair(Rules("shogi"), ("fake", "random"), players, given)
    assert (pair.wins, pair.draws, pair.losses) == (0, 0, 2)
    assert pair.ends == {end: 2}


@pytest.mark.skipif(FAIRY is None, reason="fairy-stockfish is not installed")
def test_engines_meet_bots_and_each_other(measured: Any) -> None:
    record = measured("--ladder", "random,fairy-20,fairy0", "--games", "2")
    assert set(record["engines"]) == {"fairy-20", "fairy0"}
    assert record["engines"]["fairy0"]["go"] == "go nodes 500"
    assert record["players"][0]["player"] == "fairy0"
    assert not [end for pair in record["pairs"] for end in pair["ends"] if "fault" in end]


def test_players_in_between_close_a_gap(ladder: ModuleType) -> None:
    def pair(one: str, two: str, score: float) -> dict[str, Any]:
        return {"one": one, "two": two, "score": score}

    lost = [pair("a", "b", 0.0), pair("b", "c", 0.4), pair("c", "d", 1.0)]
    assert ladder.open_gaps(lost) == [("a", "b"), ("c", "d")]
    bridged = [*lost, pair("a", "x", 0.1), pair("x", "c", 0.1)]
    assert ladder.open_gaps(bridged) == [("c", "d")]


def test_the_table_says_where_the_distance_is_open(
    ladder: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out" / "ladder.json"
    words = ["--ladder", "random,ab2", "--games", "4", "--out", str(file)]
    assert ladder.main(words) == 0
    shown = capsys.readouterr().out
    assert file.is_file()
    assert "distance may be any larger: random - ab2" in shown
    assert "95 % interval" in shown


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--games 3", "must be even"),
        ("--ladder random", "at least two players"),
        ("--ladder random,greedy greedy", "each once"),
        ("--ladder random,gredy", "did you mean 'greedy'"),
        ("--ladder random,greedy mix:random,greedy", "is not mix:ONE,TWO,SHARE"),
        ("--ladder random,greedy mix:random,greedy,2", "with a share from 0 to 1"),
        ("--ladder random,greedy --opening-plies 101", "is outside 0..100"),
        ("--ladder random,greedy --set max_plies=6", "leaves no move"),
        ("--ladder random,greedy --set max_plies", "is not key=value"),
        ("--ladder random,fairy0 --engine no-such-engine", "cannot start no-such-engine"),
    ],
)
def test_mistakes(
    ladder: ModuleType, words: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ladder.json"
    assert ladder.main([*words.split(), "--out", str(file)]) == 2
    assert hint in capsys.readouterr().err
    assert not file.exists()
