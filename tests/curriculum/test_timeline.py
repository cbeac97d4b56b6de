"""A dry run: the timeline and all checks, and nothing is trained or written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparring.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "curricula"
SMALL = ["--device", "cpu", "--threads", "1", "--collect.games", "2", "--collect.steps", "8"]


def dry_run(tmp_path: Path, *words: str) -> int:
    runs = ["--runs", str(tmp_path / "runs"), "--dry-run"]
    return main(["train", *words, *SMALL, *runs])


def test_the_timeline_says_when_who_and_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("laser_hockey", "--curriculum", str(EXAMPLES / "hockey.json"), "--json")
    assert dry_run(tmp_path, *words) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["algo"], told["budget"]) == ("sac", {"episodes": 76_000})
    shooting, defense, both, strong = told["phases"]
    assert (shooting["from"], shooting["to"]) == (
        {"decisions": 0, "episodes": 0},
        {"episodes": 8000},
    )
    assert (both["from"], both["to"]) == ({"episodes": 16_000}, {"episodes": 36_000})
    assert strong["from"] == {"episodes": 36_000}
    assert defense["opponents"] == ["weak=1"]
    assert shooting["rewards"]["closeness"] == "0ep:21.0,600ep:21.0,1000ep:2.5"
    assert shooting["flags"] == {"mode": "TRAIN_SHOOTING"}
    assert list(tmp_path.iterdir()) == []


def test_a_table_shows_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        """
[[phases]]
name = "easy"
decisions = 5000
until = { win = 0.6, against = "captain" }
opponents = ["random=1"]
rewards = { rank = "0%:1,100%:0" }
[[phases]]
name = "hard"
ppo = { lr = "0:1e-3,1e6:1e-4" }
"""
    )
    assert dry_run(tmp_path, "skull_king", "--curriculum", str(file), "--updates", "3") == 0
    out = capsys.readouterr().out
    assert "win 0.6 against captain, or 5,000 decisions later" in out
    assert "end of easy" in out
    assert "rewards rank=0%:1.0,100%:0.0" in out
    assert "settings ppo.lr=0:0.001,1000000:0.0001" in out
    assert "every setting fits; 2 phases follow one another" in out
    assert "whether updates 3 reach the last phase depends" in out
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_what_is_never_reached_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[[phases]]\nto = 5000\n[[phases]]\nname = 'later'\n")
    words = ("skull_king", "--curriculum", str(file), "--decisions", "4000")
    assert dry_run(tmp_path, *words) == 0
    assert "never reached with decisions 4,000: later" in capsys.readouterr().out


def test_a_run_without_phases_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("laser_hockey", "--rewards", "closeness=0:20,2e6:1.5", "--updates", "2")
    assert dry_run(tmp_path, *words) == 0
    out = capsys.readouterr().out
    assert "one phase, the whole run" in out
    assert "rewards closeness=0:20.0,2000000:1.5" in out


def test_what_is_wrong_is_refused_as_in_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dry_run(tmp_path, "skull_king", "--opponents", "captain=0:1,9:0", "--updates", "2") == 2
    assert "opponents: at 9 every weight is 0" in capsys.readouterr().err
    assert dry_run(tmp_path, "skull_king", "--set", "num_players=0:3,9:4") == 2
    assert "num_players cannot change while games run" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
