"""`sparring league`: what a run knows about its past selves, in words, numbers and pictures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from PIL import Image

from commands.run_helpers import make_run
from sparring.cli import main
from sparring.commands.shared import printing
from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.store.archive import MATCH, Archive, SnapshotEntry
from sparring.store.policies import policy_meta


def make_league(root: Path, snapshots: int = 3) -> tuple[Path, list[SnapshotEntry]]:
    """A run of tic-tac-toe with past selves, results and ratings that are known."""
    path = make_run(root, "mine", {10: 0.6})
    rules = Rules("tic_tac_toe")
    entries = []
    for number in range(snapshots):
        torch.manual_seed(number)
        net = make_net(rules, NetConfig(hidden=(16,)))
        with Archive(path, max_bytes=2**30, policy=policy_meta(rules, net)) as archive:
            when = {"update": number, "decisions": 1000 * number, "seconds": 60.0 * number}
            entry = archive.add(net.state_dict(), role="main", member="mine", **when)
            entries.append(entry)
            archive.record(number, 1000 * number, {entry.hash: (6, 2, 2), "random": (9, 0, 1)})
            archive.record(number, 1000 * number, {entry.hash: (10, 0, 30)}, MATCH)
            rated = 100.0 * number
            archive.rate(
                number,
                1000 * number,
                {
                    "self": (rated + 50, rated, rated + 90),
                    entry.hash: (rated, rated - 30, rated + 30),
                    "random": (0.0, 0.0, 0.0),
                },
            )
    return path, entries


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def test_the_ladder_has_everybody_the_best_first(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, entries = make_league(runs)
    Archive(path, max_bytes=1).prune([entries[1].hash], None, {})  # 0 is removed
    assert main(["league", "mine"]) == 0
    told = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert lines[1].startswith("self - 250 200 .. 290")
    assert lines[2] == "past/2 2k 200 170 .. 230 10 70.0% 40 25.0%"
    assert lines[3].startswith("past/1 1k 100 70 .. 130")
    assert any(line.startswith("past/0 (removed) 0 0 -30 .. 30") for line in lines)
    assert any(line.startswith("random - 0 0 .. 0 30 90.0%") for line in lines)
    for name in ("payoff", "ladder", "ratings"):
        with Image.open(path / f"league-{name}.png") as picture:
            assert picture.width >= 600


def test_json_has_ratings_over_time_and_counts(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, entries = make_league(runs)
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    assert main(["league", str(path), "--json", "--out", str(tmp_path / "pictures")]) == 0
    told = json.loads(capsys.readouterr().out)
    players = {player["player"]: player for player in told["players"]}
    assert players["past/1"]["hash"] == entries[1].hash
    assert players["past/1"]["training"] == {"wins": 6, "draws": 2, "losses": 2}
    assert players["past/1"]["matches"] == {"wins": 10, "draws": 0, "losses": 30}
    assert players["random"]["training"] == {"wins": 27, "draws": 0, "losses": 3}
    assert [point["rating"] for point in told["ratings"]["self"]] == [50.0, 150.0, 250.0]
    assert [point["decisions"] for point in told["ratings"]["self"]] == [0, 1000, 2000]
    assert all(Path(picture).parent == tmp_path / "pictures" for picture in told["pictures"])
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before


def test_it_can_be_shown_while_the_run_goes_on(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, entries = make_league(runs)
    with Archive(path, max_bytes=2**30) as writing:
        writing.record(50, 50_000, {entries[0].hash: (100, 0, 0)})
        assert main(["league", "mine", "--json"]) == 0
        writing.record(51, 51_000, {entries[0].hash: (1, 0, 0)})
    players = {p["player"]: p for p in json.loads(capsys.readouterr().out)["players"]}
    assert players["past/0"]["training"]["wins"] == 106


def test_snapshots_meet_and_a_damaged_one_is_left_out(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, entries = make_league(runs, 4)
    file = path / "league" / f"{entries[2].hash}.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    assert main(["league", "mine", "--matches", "40", "--threads", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    pairs = [(match["one"], match["two"]) for match in told["matches"]]
    assert pairs == [("past/0", "past/1"), ("past/0", "past/3"), ("past/1", "past/3")]
    for match in told["matches"]:
        assert match["games"] == 40
        assert 0 <= match["low"] <= match["win"] <= match["high"] <= 1
    assert "past/2 is left out of the matches" in told["notes"][0]
    assert "is damaged" in told["notes"][0]


def test_progress_is_told_within_a_pairing(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pairing of Shogi takes minutes: the games count, not the pairings."""
    make_league(runs)
    monkeypatch.setattr(printing, "LINE_EVERY_S", 0.0)
    assert main(["league", "mine", "--matches", "40", "--threads", "1", "--json"]) == 0
    told = re.findall(r"tic_tac_toe: (.+) - (.+) \((\d+)/(\d+)\)", capsys.readouterr().err)
    counts = [int(count) for _, _, count, _ in told]
    assert {int(total) for *_, total in told} == {120}
    assert counts == sorted(counts)
    assert counts[-1] == 120
    for pair in {(one, two) for one, two, *_ in told}:
        within = [int(count) % 40 for one, two, count, _ in told if (one, two) == pair]
        assert len(set(within)) > 2


def test_matches_are_between_snapshots_spread_over_the_run(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_league(runs, 7)
    words = ["league", "mine", "--matches", "8", "--max", "3", "--threads", "1", "--json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    met = {name for match in told["matches"] for name in (match["one"], match["two"])}
    assert met == {"past/0", "past/3", "past/6"}


def test_a_run_without_a_league_says_how_to_have_one(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_run(runs, "plain", {10: 0.6})
    before = set(path.rglob("*"))
    assert main(["league", "plain"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("sparring: ")
    assert "has no league; train one: sparring train GAME --opponents past" in told
    assert len(told.splitlines()) == 1
    assert set(path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["nothing"], "no run 'nothing'"),
        (["mine", "--matches", "1"], "--matches 1 must be 0 or at least 2"),
        (["mine", "--matches", "-3"], "matches -3 must be at least 0"),
        (["mine", "--max", "1"], "max 1 must be"),
    ],
)
def test_mistakes_are_one_line(
    runs: Path, capsys: pytest.CaptureFixture[str], words: list[str], what: str
) -> None:
    path, _ = make_league(runs, 1)
    assert main(["league", *words]) == 2
    told = capsys.readouterr().err
    assert what in told
    assert len(told.splitlines()) == 1
    assert not list(path.glob("*.png"))
