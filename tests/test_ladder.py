"""The ladder of Shogi players: who meets whom, and what a match counts."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from sparring import Rules
from sparring.config import NetConfig
from sparring.league.usi.engine import Engine
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store.policies import save_policy

ROOT = Path(__file__).parents[1]
FAIRY = shutil.which("fairy-stockfish", path=f"{os.environ.get('PATH', '')}:/usr/games")
FAKE = f"{sys.executable} {ROOT / 'tests' / 'league' / 'fake_usi_engine.py'}"


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


def test_neighbors_meet_and_guests_meet_everybody(ladder: ModuleType) -> None:
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


def test_colors_change_and_an_opening_is_played_with_both(ladder: ModuleType) -> None:
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
