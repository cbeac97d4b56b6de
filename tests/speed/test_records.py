from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparring.cli import main
from sparring.commands.bench.shared import middle
from sparring.errors import ConfigError
from sparring.speed.bench_records import (
    BenchRecord,
    Figure,
    change,
    changes,
    differences,
    explanations,
    verdict,
)

MACHINE = {"cpu": "a", "cores": 2, "device": "cpu", "torch": "2.1", "load_average": 0.0}
THEN = BenchRecord("bench x", {"game": "go", "games": 4}, MACHINE, {"speed": Figure((10.0, 11.0))})


def test_a_ratio_is_one_of_logarithms() -> None:
    now, then = (Figure(tuple(math.exp(v) for v in values)) for values in ((1, 2, 3), (2, 3, 4)))
    found = change("speed", now, then)
    half = 2.776 * math.sqrt(2 / 3)
    assert found.value == pytest.approx(math.exp(-1))
    assert found.low == pytest.approx(math.exp(-1 - half), rel=5e-3)
    assert found.high == pytest.approx(math.exp(-1 + half), rel=5e-3)
    assert found.verdict == "cannot tell"


@pytest.mark.parametrize(
    ("rounds", "higher", "word"),
    [
        ((90, 91, 92), True, "slower"),
        ((110, 111, 112), True, "faster"),
        ((90, 91, 92), False, "faster"),
        ((100.0, 100.5, 101.0), True, "same"),
        ((60, 100, 140), True, "cannot tell"),
        ((50,), True, "cannot tell"),
    ],
)
def test_what_is_said_of_a_figure(rounds: tuple[float, ...], higher: bool, word: str) -> None:
    then = Figure((100.0, 100.2, 100.4), higher=higher)
    found = change("speed", Figure(rounds, higher=higher), then)
    assert found.verdict == word
    assert found.bad == (word == "slower")
    assert str(found).startswith(f"{word}: ")


def test_numbers_that_may_be_below_zero_are_compared_by_their_difference() -> None:
    now, then = Figure((-3.0, -3.1, -2.9), ratio=False), Figure((1.0, 1.1, 0.9), ratio=False)
    found = change("score", now, then)
    assert found.value == pytest.approx(-4)
    assert found.verdict == "worse"
    assert verdict(-1, 1, higher=True, ratio=False) == "cannot tell"


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    THEN.write(tmp_path / "deep" / "x.json")
    assert BenchRecord.read(tmp_path / "deep" / "x.json") == THEN
    assert [one.name for one in changes(THEN, THEN)] == ["speed"]


@pytest.mark.parametrize("rounds", [[], ["1"], [10**400], [True], 3, None])
def test_a_record_without_numbers_is_refused(tmp_path: Path, rounds: Any) -> None:
    plain = THEN.plain()
    plain["figures"]["speed"]["rounds"] = rounds
    (tmp_path / "x.json").write_text(json.dumps(plain))
    with pytest.raises(ConfigError, match=r"--record: .*x\.json is no record of a bench"):
        BenchRecord.read(tmp_path / "x.json")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "other"}', '{"format": 3', "[" * 10**5]
)
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ConfigError, match=r"--record: .*x\.json"):
        BenchRecord.read(tmp_path / "x.json")
    with pytest.raises(ConfigError, match="cannot read"):
        BenchRecord.read(tmp_path / "y.json")


def test_what_differs_is_named() -> None:
    now = replace(THEN, settings={"game": "go", "games": 8}, machine={**MACHINE, "cores": 4})
    assert differences(now, THEN) == ["cores was 2, is 4", "games was 4, is 8"]
    assert differences(THEN, THEN) == []
    busy = replace(THEN, machine={**MACHINE, "torch": "2.2", "load_average": 3.0})
    assert explanations(busy, THEN) == [
        "torch was 2.1, is 2.2",
        "the machine was busy now (load 3 on 2 cores)",
    ]


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_a_bench_is_held_against_its_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "bench",
        "pool",
        "tic_tac_toe",
        "--games",
        "16",
        "--seconds",
        "0.05",
        "--rounds",
        "3",
        "--threads",
        "1",
    ]
    kept = tmp_path / "kept.json"
    assert main([*words, "--save", str(kept)]) == 0
    stored = json.loads(kept.read_text())
    for figure in stored["figures"].values():
        figure["rounds"] = [1e3 * value for value in figure["rounds"]]
    kept.write_text(json.dumps(stored))
    capsys.readouterr()
    assert main([*words, "--record", str(kept)]) == 0
    assert "slower: 0.00" in capsys.readouterr().out
    assert main([*words, "--record", str(kept), "--fail-slower", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["against"]
    assert told["slower"] == len(told["changes"]) == 4
    words[4] = "32"
    assert main([*words, "--record", str(kept)]) == 2
    assert "games was 16, is 32" in capsys.readouterr().err
    assert main([*words, "--record", str(kept), "--anyway"]) == 0
    assert "not the same bench: games was 16, is 32" in capsys.readouterr().out
    assert main([*words, "--anyway"]) == 2


def test_what_is_shown_has_the_ratio_that_is_told() -> None:
    then, now = Figure((1e3, 9e3)), Figure((6e3, 6e3))
    shown = [float(middle(one, ratio=True).replace(",", "")) for one in (then, now)]
    assert shown[1] / shown[0] == pytest.approx(change("speed", now, then).value)
    assert middle(Figure((-1.0, 3.0)), ratio=False) == "1"
