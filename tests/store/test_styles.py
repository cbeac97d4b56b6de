"""Names with a style of play behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparring import ConfigError, Policy, Rules
from sparring.config import NetConfig
from sparring.nets.make import make_net
from sparring.search.budget import Budget
from sparring.store.lookup import find_player, split_style
from sparring.store.policies import load_policy, save_policy
from sparring.store.styles import Style


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rules = Rules("tic_tac_toe")
    policy = Policy(rules, make_net(rules, NetConfig(hidden=(8,))))
    for name in ("mine", "mail@64", "odd@greedy"):
        save_policy(policy, tmp_path / "runs" / name)
    return tmp_path / "runs"


@pytest.mark.parametrize(
    ("text", "name", "style"),
    [
        ("mine", "mine", Style()),
        ("mine@greedy", "mine", Style(greedy=True)),
        ("mine@64", "mine", Style(budget=Budget(64))),
        ("mine@2s", "mine", Style(budget=Budget.parse("2s"))),
        ("mine@800/puct", "mine", Style(budget=Budget.parse("800/puct"))),
        ("mine@sampled@16", "mine", Style(greedy=False, budget=Budget(16))),
        ("mine@16@sampled", "mine", Style(greedy=False, budget=Budget(16))),
        ("mine@level3", "mine", Style(level=3)),
        ("mail@64", "mail@64", Style()),
        ("runs/mail@64", "runs/mail@64", Style()),
        ("mail@64@32", "mail@64", Style(budget=Budget(32))),
        ("odd@greedy", "odd@greedy", Style()),
        ("a@b", "a@b", Style()),
        ("a@b@8", "a@b", Style(budget=Budget(8))),
        ("x" * 300 + "@8", "x" * 300, Style(budget=Budget(8))),
    ],
)
def test_styles_are_split_off_unless_a_policy_has_that_name(
    runs: Path, text: str, name: str, style: Style
) -> None:
    assert split_style(text) == (name, style)
    assert split_style(f"{name}{style}") == (name, style)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mine@0", "mine@0: "),
        ("mine@64@32", "give one of @greedy and @sampled, one search, or one level"),
        ("mine@greedy@sampled", "give one of @greedy"),
        ("mine@level3@64", "or one level"),
        ("mine@level0", "@level0 is unknown; did you mean 'level"),
        ("mine@fast", "@fast is unknown; there are: greedy, sampled, level1"),
        ("careful@64", "careful is a bot, without a network to sample from or to search with"),
    ],
)
def test_what_is_no_style_is_refused_in_one_line(runs: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        find_player(text)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_loaded_name_plays_in_its_style(runs: Path) -> None:
    assert load_policy("mine@sampled@16").budget == Budget(16)
    assert load_policy("mine@level9").name == "mine@level9"
    assert load_policy("mail@64").budget is None
    assert load_policy(runs / "mine").greedy is None
