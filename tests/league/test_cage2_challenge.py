"""`sparring eval --protocol cage2`: the nine settings of the challenge, next to its leaderboard."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparring.cli import main
from sparring.games.rules import Rules
from sparring.league.cage2_challenge import LEADERBOARD, Published, score_repairs


def report(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["eval", *words, "--protocol", "cage2", "--threads", "1", "--json"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    return shown


def test_bots_score_what_the_leaderboard_says(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row.name: row for row in LEADERBOARD}
    for bot, name in (("cycle", "restore in turn"), ("bot:sleep", "sleep"), ("random", "random")):
        shown = report(capsys, bot, "--set", "preset=CHALLENGE")
        assert shown["games"] == 1000 and shown["preset"] == "CHALLENGE"
        found = [
            shown["results"][red][steps]
            for steps in ("30", "50", "100")
            for red in ("B_line", "Meander", "sleep")
        ]
        for one, published in zip(found, rows[name].row, strict=True):
            assert published is not None
            # Both are means of 1,000 episodes.
            assert abs(one["mean"] - published) <= 4 * one["error"] * 2**0.5 + 0.05, (bot, one)
        assert shown["total"]["mean"] == pytest.approx(sum(one["mean"] for one in found))


@pytest.mark.parametrize("row", LEADERBOARD, ids=lambda row: row.name)
def test_the_leaderboard_adds_up(row: Published) -> None:
    told = [mean for mean in row.row if mean is not None]
    if len(told) == len(row.row):
        assert sum(told) == pytest.approx(row.total, abs=0.06)
    else:
        assert sum(told) > row.total


def test_the_table_puts_the_player_where_it_belongs(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eval", "bot:vreact", "--protocol", "cage2", "--games", "50", "--threads", "1"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[1] if line[:4].strip() else line.split()[0] for line in lines[1:12]]
    assert names.index("UTS,") < names.index("bot:vreact") < names.index("restore")
    assert "preset=CHALLENGE" in lines[-1]


def test_orders_are_judged_by_unit(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--set", "orders=FIXED", "--set", "order=4,1,2,3,0", "--games", "60")
    users_first = report(capsys, "vreact", *flags)["orders"]
    assert users_first["defender"]["repairs"] == 0
    assert users_first["user"]["repairs"] > 1
    assert users_first["user"]["in_order"] == 1.0  # nothing comes before users
    assert users_first["enterprise"]["in_order"] < 1.0
    assert main(["eval", "vreact", "--protocol", "cage2", *flags]) == 0
    assert "in order" in capsys.readouterr().out


def test_a_repair_in_the_last_step_counts() -> None:
    rules = Rules("cage2", {"orders": "FIXED", "red": "B_LINE", "max_steps": 4})
    found = score_repairs("vreact", rules, games=400, seed=1, threads=1)
    # B_line's first exploit comes with step 3; its answer is the last step of the episode.
    assert found["user"].repairs > 0.5


def test_orders_are_judged_in_the_longest_episodes_too() -> None:
    rules = Rules("cage2", {"orders": "FIXED", "red": "B_LINE", "max_steps": 65535})
    found = score_repairs("vreact", rules, games=2, seed=1, threads=1)
    assert found["user"].repairs > 0.5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["vreact", "--protocol", "cage"], "there is cage2"),
        (["captain", "--protocol", "cage2", "--game", "skull_king"], "is for cage2"),
        (["vreact", "--protocol", "cage2", "--against", "sleep"], "leave --against out"),
        (["vreac", "--protocol", "cage2"], "vreact"),
        (["vreact", "--protocol", "cage2", "--set", "red=SLEEP"], "sets red itself; leave --set"),
        (["vreact", "--protocol", "cage2", "--set", "max_steps=9"], "leave --set max_steps=9 out"),
    ],
)
def test_mistakes_say_what_to_do(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", *words]) == 2
    assert message in capsys.readouterr().err
