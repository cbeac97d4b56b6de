"""`--search`, `@64` and `--level` as a person types them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from remembering import remembering
from sparring import Policy, Rules
from sparring.cli import main
from sparring.config import NetConfig
from sparring.nets.make import make_net
from sparring.nets.policy import VALUES
from sparring.store.policies import save_policy


def fresh(game: str, **meta: bool) -> Policy:
    torch.manual_seed(0)
    rules = Rules(game)
    return Policy(rules, make_net(rules, NetConfig(hidden=(16,))), meta=meta)


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Type a command in a folder with the runs ttt, four, deck, blind and old; returns its text."""
    monkeypatch.chdir(tmp_path)
    for name, game in {"ttt": "tic_tac_toe", "four": "connect_four", "deck": "leduc_poker"}.items():
        save_policy(fresh(game), tmp_path / "runs" / name)
    save_policy(fresh("tic_tac_toe", **{VALUES: False}), tmp_path / "runs" / "blind")
    save_policy(remembering("tic_tac_toe"), tmp_path / "runs" / "old")

    def run(words: str, keys: str = "", code: int = 0) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO(keys))
        assert main(words.split()) == code
        told = capsys.readouterr()
        return told.err if code else told.out

    return run


def test_eval_searches_and_is_stronger_for_it(typed: Any) -> None:
    def share(words: str) -> float:
        told = json.loads(typed(f"eval ttt {words} --against careful --games 64 --json"))
        return float(told["results"]["careful"]["win"])

    assert share("--search 32") > share("") + 0.1
    by_name = json.loads(typed("eval ttt@32 --against careful --games 64 --json"))
    assert share("--search 32") == by_name["results"]["careful"]["win"]


def test_arena_has_the_same_policy_with_and_without_search(typed: Any) -> None:
    told = typed("arena ttt ttt@16 ttt@level1 careful --games 16")
    assert "ttt@16" in told
    assert "ttt@level1" in told
    alike = typed("arena ttt@16 runs/ttt --search 16 --games 16", code=2)
    assert "ttt@16 and runs/ttt@16 are both ttt; give each player once" in alike


def test_exploit_trains_against_the_search(typed: Any) -> None:
    words = "exploit ttt --search 2 --decisions 4000 --games 16 --threads 1 --json"
    told = json.loads(typed(words))
    assert (told["search"], told["plays"]) == ("2", "sampled")
    assert told["policy"] == "ttt"


def test_play_shows_what_the_search_saw(typed: Any) -> None:
    told = typed("play ttt --search 16 --seat 1 --seed 1", "w\n?\nq\n")
    assert "against ttt@16" in told
    assert "w why" in told
    assert told.count("16 simulations, value ") == 2
    assert "  line: " in told
    assert "ttt@16 would choose: " in told
    assert "No search to show" in typed("play ttt --search 16 --seed 1", "w\nq\n")


def test_hidden_cards_are_searched_in_worlds(typed: Any) -> None:
    told = typed("play deck --search 16 --seat 1 --seed 1", "w\n?\nq\n")
    assert "against deck@16" in told
    assert told.count(" playouts in ") == 2
    assert "deck@16 would choose: " in told
    assert "deck@16" in typed("arena deck deck@16 caller --games 16")
    by_time = json.loads(typed("eval deck@2ms --against caller --games 2 --json"))
    assert by_time["results"]["caller"]["games"] == 2
    words = "exploit deck --search 8 --decisions 4000 --games 16 --threads 1 --json"
    assert json.loads(typed(words))["search"] == "8"
    assert "against deck@level7" in typed("play deck --level 7 --seed 1", "q\n")


def test_a_time_serves_where_a_number_does(typed: Any) -> None:
    told = typed("play ttt --search 1ms --seat 1 --seed 1", "w\nq\n")
    assert "against ttt@0.001s" in told
    assert "simulations, value " in told
    assert json.loads(typed("eval ttt --search 1ms --games 2 --json"))["search"] == "1ms"


def test_levels_are_of_an_agent_or_the_bots_in_order(typed: Any) -> None:
    assert "against four@level7" in typed("play four --level 7 --seed 1", "q\n")
    assert "against champion@level1" in typed("play connect_four --level 1 --seed 1", "q\n")
    assert "against random" in typed("play dark_hex --level 1 --seed 1", "q\n")
    assert f"against {Rules('dark_hex').bots[-1]}" in typed(
        "play dark_hex --level 9 --seed 1", "q\n"
    )
    assert "against deck@level2" in typed("play deck --level 2 --seed 1", "q\n")


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("eval ttt --search 0", "--search 0: the budget must be above 0"),
        ("eval ttt --search -4", "--search"),
        ("eval ttt --search soon", "--search soon: 'soon' is no budget; write a number"),
        ("eval ttt --search 2000000", "more than a search makes, 1048575"),
        ("eval ttt@0", "ttt@0: the budget must be above 0"),
        ("eval careful --game tic_tac_toe --search 8", "careful is a bot, which has no network"),
        ("eval careful@8 --game tic_tac_toe", "careful is a bot, without a network"),
        ("eval deck --search 8/puct", "hides cards, so no tree is grown by puct"),
        ("eval deck@2s/gumbel", "hides cards, so no tree is grown by gumbel"),
        ("eval blind --search 8", "blind has no values"),
        ("eval old --search 8", "old has memory"),
        ("arena random careful --game tic_tac_toe --search 8", "no network to search with"),
        ("play ttt --search 8 --level 3", "--level and --search exclude each other"),
        ("play tic_tac_toe --against careful --search 8", "careful is a bot, which has no network"),
        ("play tic_tac_toe --against careful --level 3", "bots have no levels"),
        ("play old --level 9", "level 9 searches, and old has memory"),
        ("exploit ttt@greedy", "it samples unless --greedy is given"),
        ("usi ttt --search 8", "ttt plays tic_tac_toe, not shogi"),
        ("train tic_tac_toe --opponents past@8=1", "past selves play without search"),
    ],
)
def test_what_cannot_be_searched_says_so_in_one_line(typed: Any, words: str, told: str) -> None:
    (line,) = [one for one in typed(words, code=2).splitlines() if one.startswith("sparring: ")]
    assert told in line
