"""`sparring arena`: everybody meets everybody, as a user sees it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from sparring import ConfigError, Rules
from sparring.cli import main
from sparring.config import NetConfig
from sparring.league.arena import play_match
from sparring.league.intervals import Sprt
from sparring.league.round_robin import RoundRobinSettings, join_matches, pairs_of, play_round_robin
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.store.policies import save_policy

QUICK = ["--games", "64", "--threads", "1"]


def fresh(game: str, seed: int, **flags: int) -> Policy:
    torch.manual_seed(seed)
    rules = Rules(game, flags)
    net = Perceptron(rules, NetConfig(hidden=(8,)))
    torch.nn.init.normal_(net.policy_head.weight)
    return Policy(rules, net)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("arena")
    save_policy(fresh("tic_tac_toe", 0), made / "one")
    save_policy(fresh("tic_tac_toe", 1), made / "two")
    save_policy(fresh("skull_king", 0, num_players=3), made / "three")
    return made


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def report(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["arena", *words, *QUICK, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_any_mix_meets_and_is_rated(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, "random", "one", "bot:careful", "two")
    assert found["game"] == "tic_tac_toe"
    names = ["random", "one", "careful", "two"]
    pairs = [(p["one"], p["two"]) for p in found["pairings"]]
    assert pairs == pairs_of(Rules("tic_tac_toe"), names)
    assert found["games"] == 6 * 64
    assert [row["elo"] for row in found["ratings"]] == sorted(
        (row["elo"] for row in found["ratings"]), reverse=True
    )
    by_name = {row["player"]: row for row in found["ratings"]}
    assert (by_name["random"]["elo"], by_name["random"]["anchor"]) == (0, True)
    assert by_name["one"]["policy"] == "one"
    assert by_name["careful"]["low"] > 0
    assert all(row["games"] == 3 * 64 for row in found["ratings"])
    assert found == report(capsys, "random", "one", "bot:careful", "two")


def test_tables_of_more_seats_are_rated_by_places(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, "random", "captain", "rule_easy", "--game", "skull_king")
    assert len(found["pairings"]) == 6  # it matters who is alone
    assert [row["player"] for row in found["ratings"]] == ["captain", "rule_easy", "random"]
    assert found["ratings"][0]["low"] > found["ratings"][1]["high"]


def test_flags_are_those_of_the_first_policy(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, "captain", "three")
    assert (found["flags"], found["seats"]) == ({"num_players": 3}, 3)


def test_ratings_are_measured_from_the_anchors_given(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["random", "careful", "one", "--game", "tic_tac_toe"]
    usual = {row["player"]: row["elo"] for row in report(capsys, *words)["ratings"]}
    found = report(capsys, *words, "--anchor", "careful=1000")
    moved = {row["player"]: row["elo"] for row in found["ratings"]}
    assert moved["careful"] == 1000
    for name, elo in moved.items():
        assert elo - 1000 == pytest.approx(usual[name] - usual["careful"], abs=0.01)


def test_pictures_are_drawn_where_they_are_wanted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(folder.iterdir())
    assert main(["arena", "random", "one", *QUICK, "--out", str(tmp_path / "a" / "b")]) == 0
    assert "pictures: " in capsys.readouterr().out
    for name in ("payoff.png", "ladder.png"):
        with Image.open(tmp_path / "a" / "b" / name) as image:
            assert image.format == "PNG"
    assert set(folder.iterdir()) == before


def test_pictures_are_of_the_kind_that_the_file_says(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["arena", "random", "one", *QUICK, "--out", str(tmp_path / "cup.pdf")]) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["cup-ladder.pdf", "cup-payoff.pdf"]
    assert all(file.read_bytes().startswith(b"%PDF") for file in tmp_path.iterdir())


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_tables_fit_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "dumb")
    words = ["random", "careful", "one", "two", "--sprt", *QUICK]
    assert main(["arena", *words]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= columns
    assert "fixed" in shown
    assert ("wider terminals also show" in shown) == (columns == 40)


def test_a_clear_pairing_stops_early_and_an_open_one_at_the_end() -> None:
    rules = Rules("tic_tac_toe")
    settings = RoundRobinSettings(games=4096, sprt=Sprt())
    told: list[int] = []
    found = play_round_robin(
        rules, ["random", "careful"], settings, progress=lambda played, _: told.append(played)
    )
    (pairing,) = found.pairings
    assert pairing.verdict == "weaker"
    assert pairing.result.games < 2048
    assert told == sorted(told)
    assert told[-1] == 4096  # the bar ends where it was to end
    # A player against one that is as good: nothing is decided, all games are played.
    twins = [fresh("tic_tac_toe", 0), fresh("tic_tac_toe", 0)]
    twins[0].name, twins[1].name = "a", "b"
    settings = RoundRobinSettings(games=600, sprt=Sprt(), greedy=False)
    (pairing,) = play_round_robin(rules, twins, settings).pairings
    assert (pairing.verdict, pairing.result.games) == ("", 600)


def test_parts_of_a_match_join_to_the_whole() -> None:
    rules = Rules("skull_king")
    table = ["captain", "random", "random", "random"]
    parts = [play_match(rules, table, games=40, seed=seed) for seed in (1, 2)]
    whole = join_matches(rules, parts)
    assert (whole.games, whole.deals) == (80, 20)
    assert whole.first.wins == sum(part.first.wins for part in parts)
    assert whole.first.win_share == pytest.approx(sum(p.first.win_share for p in parts) / 2)
    # The same deals once more are no more evidence.
    again = join_matches(
        Rules("tic_tac_toe"),
        [play_match(Rules("tic_tac_toe"), ["careful", "random"], games=40, seed=1)] * 2,
    )
    alone = play_match(Rules("tic_tac_toe"), ["careful", "random"], games=40, seed=1)
    assert again.distinct_deals == alone.distinct_deals


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("random --game tic_tac_toe", "needs at least two players, this is random"),
        ("--game tic_tac_toe", "needs at least two players"),
        ("random", " games have random: cage2, "),
        ("careful captain", "these bots play no game together"),
        ("random bot:random --game tic_tac_toe", "random is given twice"),
        ("one one random", "one is given twice"),
        ("one ./one random", "one and ./one are both one; give each player once"),
        ("one three", "three plays skull_king, not tic_tac_toe"),
        ("one random --game skull_king", "one plays tic_tac_toe, not skull_king"),
        ("one carefull", "did you mean 'careful'"),
        ("none of --game cage2", "cage2 has one seat"),
        ("one random --anchor nobody=0", "the anchor 'nobody' does not play"),
        ("one random --anchor random", "'random' is not NAME=ELO"),
        ("one random --anchor random=nan", "the rating nan; give a finite number"),
        ("one random --elo0 5 --elo1 5 --sprt", "--elo0 5 must be below --elo1 5"),
        ("one random --alpha 0.6", "alpha"),
        ("one random --games 1", "games"),
        ("one random --out picture.jpg", "--out picture.jpg is no picture; give a folder"),
        ("one random --opening-plies 99", "--opening-plies 99 leaves no decision"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    words: str, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(folder.iterdir())
    if "cage2" in words:
        words = " ".join([*Rules("cage2").bots[:2], "--game cage2"])
    assert main(["arena", *words.split()]) == 2
    shown = capsys.readouterr()
    assert told in shown.err
    assert not shown.out
    assert shown.err.splitlines()[-1].startswith("sparring: ")
    assert set(folder.iterdir()) == before


def test_python_refuses_the_same() -> None:
    with pytest.raises(ConfigError, match="random is given twice"):
        play_round_robin(Rules("tic_tac_toe"), ["random", "random"], RoundRobinSettings())


def test_networks_are_moved_to_the_device_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["arena", "random", "one", *QUICK]
    if not torch.cuda.is_available():
        assert main([*words, "--device", "cuda"]) == 2
        assert "torch sees no GPU here" in capsys.readouterr().err
    assert main([*words, "--device", "cuda", "--cluster", "local"]) == 2
    assert "leave it or --cluster out" in capsys.readouterr().err
    found = report(capsys, "random", "one", "--game", "tic_tac_toe")
    assert found == report(capsys, "random", "one", "--game", "tic_tac_toe", "--device", "cpu")
