"""`sparring ladder`: a table that grows, survives what happens to it, and counts no game twice."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sparring import Rules
from sparring.cli import main
from sparring.config import NetConfig
from sparring.league import ladder_growth
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.store import champions
from sparring.store.policies import save_policy

QUICK = ["--games", "64", "--threads", "1"]
FILE = Path("runs/ladders/tic_tac_toe.json")


def policy(seed: int = 0) -> Policy:
    torch.manual_seed(seed)
    rules = Rules("tic_tac_toe")
    net = Perceptron(rules, NetConfig(hidden=(8,)))
    torch.nn.init.normal_(net.policy_head.weight)
    return Policy(rules, net)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(champions, "ZOO", tmp_path / "zoo")  # without a champion
    save_policy(policy(), tmp_path / "mine")
    return tmp_path


def ladder(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["ladder", "tic_tac_toe", *words, *QUICK, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def pairings() -> dict[tuple[str, str], Any]:
    return {(one["one"], one["two"]): one for one in json.loads(FILE.read_text())["pairings"]}


def test_a_ladder_begins_with_the_bots_and_grows(capsys: pytest.CaptureFixture[str]) -> None:
    found = ladder(capsys)
    assert [row["player"] for row in found["ratings"]] == ["careful", "random"]
    assert (found["games"], found["file"]) == (64, str(FILE))
    before, bots = FILE.read_bytes(), pairings()
    assert ladder(capsys) == found
    assert FILE.read_bytes() == before  # nothing was missing, nothing is played again
    grown = ladder(capsys, "--submit", "mine", "--seed", "3")
    assert {row["player"]: row["kind"] for row in grown["ratings"]} == {
        "mine": "policy",
        "careful": "bot",
        "random": "bot",
    }
    assert pairings().keys() == {*bots, ("random", "mine"), ("careful", "mine")}
    assert bots.items() <= pairings().items()
    again = ladder(capsys, "--submit", "mine")
    assert again["notes"] == ["mine is on the ladder as mine"]
    assert again["games"] == grown["games"]
    searching = ladder(capsys, "--submit", "mine@4")
    assert len(searching["pairings"]) == 6


def test_a_table_fits_the_terminal_and_pictures_are_drawn(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ladder(capsys, "--submit", "mine")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    assert main(["ladder", "tic_tac_toe", "--out", "cup.svg"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "95 %" in shown and "mine" in shown and "fixed" in shown
    assert {file.name for file in here.glob("cup*")} == {"cup-ladder.svg", "cup-payoff.svg"}
    assert main(["ladder"]) == 0
    assert "tic_tac_toe" in capsys.readouterr().out


def test_an_interrupted_ladder_goes_on_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = ladder(capsys, "--submit", "mine")
    played = pairings()
    FILE.unlink()
    play, calls = ladder_growth.play_pairing, []

    def stopping(*words: Any) -> Any:
        calls.append(words)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return play(*words)

    monkeypatch.setattr(ladder_growth, "play_pairing", stopping)
    assert main(["ladder", "tic_tac_toe", "--submit", "mine", *QUICK]) == 130
    assert "2 pairings are kept" in capsys.readouterr().err
    assert len(pairings()) == 2
    assert ladder(capsys, "--submit", "mine")["ratings"] == whole["ratings"]
    assert pairings() == played
    assert len(calls) == 4


def test_other_weights_under_a_name_are_another_player(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ladder(capsys, "--submit", "mine")
    save_policy(policy(1), here / "mine")
    grown = ladder(capsys, "--submit", "mine")
    assert {"mine", "mine#2"} <= {row["player"] for row in grown["ratings"]}
    (note,) = grown["notes"]
    assert note.startswith("mine meets nobody new, mine holds other weights now")
    assert ("mine", "mine#2") not in pairings()
    save_policy(policy(2), here / "mine")
    replaced = ladder(capsys, "--submit", "mine", "--replace")
    assert [row["player"] for row in replaced["ratings"] if row["kind"] == "policy"] == ["mine"]
    (here / "mine").rename(here / "moved")
    assert main(["ladder", "tic_tac_toe"]) == 0
    assert "mine (gone)" in capsys.readouterr().out
    found = ladder(capsys, "--submit", "moved")
    assert found["notes"] == ["moved is on the ladder as mine"]
    assert [row["path"] for row in found["ratings"] if row["path"]] == ["moved"]


def test_who_is_taken_off_stays_off(capsys: pytest.CaptureFixture[str]) -> None:
    ladder(capsys, "--submit", "mine")
    assert ladder(capsys, "--remove", "random")["left_out"] == ["random"]
    found = ladder(capsys)
    assert {row["player"] for row in found["ratings"]} == {"mine", "careful"}
    back = ladder(capsys, "--submit", "random")
    assert (len(back["ratings"]), back["left_out"]) == (3, [])


def change(edit: Callable[[dict[str, Any]], object]) -> None:
    saved = json.loads(FILE.read_text())
    edit(saved)
    FILE.write_text(json.dumps(saved))


def test_files_that_do_not_fit_are_refused_and_left_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ladder(capsys)
    whole = FILE.read_text()
    edits: dict[str, Callable[[dict[str, Any]], object]] = {
        "rules of tic_tac_toe (version 7, this is 1), so its results do not count; move it away": (
            lambda saved: saved.update(rules_version=7)
        ),
        "but games come out differently": lambda saved: saved.update(signature="0" * 16),
        "written by a later version of sparring": lambda saved: saved.update(version=2),
        "no game called 'tic_tac'": lambda saved: saved.update(game="tic_tac"),
        "players is missing; move it away": lambda saved: saved.pop("players"),
        "not a name of printable letters": lambda saved: saved["players"][0].update(name="\x1b[2J"),
        "a player is there twice": lambda saved: saved["players"].append(saved["players"][0]),
        "a pairing is there twice": lambda saved: saved["pairings"].append(saved["pairings"][0]),
        "random - nobody is no pairing": lambda saved: saved["pairings"][0].update(two="nobody"),
        "is no outcome of a deal": lambda saved: saved["pairings"][0].update(deals=[[[3, 3], 1]]),
        "not the games of a deal": lambda saved: saved["pairings"][0].update(deals=[7]),
        "deals are distinct": lambda saved: saved["pairings"][0].update(distinct_deals=99),
    }
    for hint, edit in edits.items():
        FILE.write_text(whole)
        change(edit)
        before = FILE.read_bytes()
        assert main(["ladder", "tic_tac_toe"]) == 3, hint
        shown = capsys.readouterr()
        assert hint in shown.err and str(FILE) in shown.err, shown.err
        assert not shown.out and len(shown.err.splitlines()) == 1
        assert FILE.read_bytes() == before
    FILE.write_text(whole[:200])
    assert main(["ladder", "tic_tac_toe", "--submit", "mine"]) == 3
    assert "no ladder that can be read" in capsys.readouterr().err
    assert main(["ladder"]) == 0  # the list goes on, and says which is damaged
    assert "no ladder that can be read" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--submit mine", "--submit needs a game"),
        ("cage2", "cage2 has one seat"),
        ("my:make_env", "no module called 'my'"),
        ("tic_tac_toe --replace", "--replace goes with --submit"),
        ("tic_tac_toe --submit mine --remove random", "do not go together"),
        ("tic_tac_toe --submit carefull", "did you mean 'careful'"),
        ("tic_tac_toe --remove randm", "did you mean 'random'?"),
        ("skull_king --submit mine", "mine plays tic_tac_toe, not skull_king"),
        ("tic_tac_toe --set skip_forced=1", "is a ladder with the default flags"),
        ("kuhn_poker --file runs/ladders/tic_tac_toe.json", "a ladder of tic_tac_toe, not kuhn"),
        ("kuhn_poker --file .", "no ladder that can be read"),
        ("tic_tac_toe --games -1", "games"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ladder(capsys)
    before = FILE.read_bytes()
    assert main(["ladder", *words.split()]) in (2, 3)
    shown = capsys.readouterr()
    assert told in shown.err
    assert not shown.out
    assert FILE.read_bytes() == before


def test_two_processes_do_not_play_for_one_ladder(capsys: pytest.CaptureFixture[str]) -> None:
    with ladder_growth.alone(FILE):
        assert main(["ladder", "tic_tac_toe", *QUICK]) == 2
    assert "another process plays for runs/ladders/tic_tac_toe.json" in capsys.readouterr().err
    assert not FILE.exists()
    ladder(capsys, "--submit", "mine")
    change(lambda saved: saved["pairings"].pop())
    with ladder_growth.alone(FILE):  # what is there so far can be looked at meanwhile
        assert main(["ladder", "tic_tac_toe"]) == 0
    shown = capsys.readouterr().out
    assert "another process plays" in shown and "careful" in shown
