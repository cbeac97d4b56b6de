"""A run ends when an evaluation finds what `eval.stop` asks for."""

from __future__ import annotations

import re
from typing import Any

import pytest

import sparring
from sparring.commands.train import why_early
from sparring.config import EvaluationConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules, game_names
from sparring.training.budget import (
    MET,
    check_stop,
    is_met,
    meets,
    met_conditions,
    read_stop_rules,
    shares_of,
)
from sparring.training.records.overview import events_of

ORDERED = Rules("cage2", {"orders": "DRAWN"})


def found(**stats: float) -> dict[str, Any]:
    """What an evaluation says about one opponent."""
    sure = {"win": 0.6, "low": 0.55, "high": 0.65}
    return {**sure, "score": -3.0, "score_low": -4.0, "score_high": -2.0, "stats": stats}


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (["order_kept=0.9"], True),
        (["order_kept=0.9.."], True),
        (["order_kept=0.95"], False),
        (["order_kept=0.5..0.9"], False),
        (["hosts_lost=..2"], False),
        (["hosts_lost=..3"], True),
        (["order_kept=0.9", "hosts_lost=..2"], False),
        (["order_kept=0.9", "hosts_lost=..3"], True),
        (["decoys=1"], False),  # nothing was counted
        (["score=-4"], True),
        (["score=-3.5"], False),  # the lower end of the interval is not there yet
        (["score=..-2"], True),
        (["score=..-2.5"], False),
        ([], False),
    ],
)
def test_what_an_evaluation_has_to_find(words: list[str], ends: bool) -> None:
    results = {"alone": found(order_kept=0.91, hosts_lost=2.5)}
    assert meets(words, ORDERED, results) is ends


def test_it_has_to_hold_against_every_opponent() -> None:
    rules = Rules("skull_king")
    strong, weak = found(bid_kept=0.7), {**found(bid_kept=0.4), "low": 0.2}
    for words in (["win=0.5"], ["bid_kept=0.6"]):
        assert meets(words, rules, {"captain": strong})
        assert not meets(words, rules, {"captain": strong, "rule_hard": weak})


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("order_kep=0.9", "eval.stop order_kep=0.9: cage2 measures no 'order_kep'; did you mean"),
        ("win=0.5", "cage2 measures no 'win'"),
        ("order_kept", "'order_kept' is not key=value"),
        ("order_kept=high", "'high' is no range; order_kept=0.9 ends at 0.9 or more"),
        ("order_kept=", "'' is no range"),
        ("order_kept=..", "'..' is no range"),
        ("order_kept=2..1", "'2..1' is no range"),
        ("order_kept=nan", "'nan' is no range"),
        ("order_kept=1.3", "order_kept=1.3: it is a share, from 0 to 1; 90 % is 0.9"),
        ("order_kept=..-0.1", "it is a share, from 0 to 1"),
        ("order_kept=95", "it is a share, from 0 to 1"),
    ],
)
def test_what_nothing_could_meet_is_refused(word: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as refused:
        check_stop(EvaluationConfig(stop=(word,)), ORDERED)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("game", "word"), [("skull_king", "bid_kept_late=80"), ("skull_king", "win=60")]
)
def test_shares_of_other_games_are_known_too(game: str, word: str) -> None:
    with pytest.raises(ConfigError, match="it is a share"):
        read_stop_rules([word], Rules(game))


def test_every_share_is_a_statistic() -> None:
    for name in game_names():
        rules = ORDERED if name == "cage2" else Rules(name)
        assert set(shares_of(name)) <= {stat.name for stat in rules.stats}


def test_what_met_a_rule_is_told_with_its_value() -> None:
    results = {"alone": found(order_kept=0.534, hosts_lost=2.5), "other": found(order_kept=0.6)}
    assert met_conditions(["order_kept=0.3"], ORDERED, results) == ["order_kept 0.534 >= 0.3"]
    assert met_conditions(["score=-5..0"], ORDERED, results) == [
        "score -4 (lower end of 95 %) >= -5",
        "score -2 (upper end of 95 %) <= 0",
    ]


def test_it_needs_orders_and_evaluations() -> None:
    kept = EvaluationConfig(stop=("order_kept=0.9",))
    with pytest.raises(ConfigError, match="measures no 'order_kept'; there are: score, hosts_lost"):
        check_stop(kept, Rules("cage2"))
    off = EvaluationConfig(stop=("order_kept=0.9",), off=True)
    with pytest.raises(ConfigError, match=r"eval\.stop needs evaluations, and eval\.off"):
        check_stop(off, ORDERED)


def test_a_new_budget_goes_beyond_it() -> None:
    met = {"event": MET, "rules": ["order_kept=0.9"]}
    assert is_met(["order_kept=0.9"], [met, {"event": "ended"}])
    assert not is_met(["order_kept=0.95"], [met])
    assert not is_met(["order_kept=0.9"], [met, {"event": "budget"}])


@pytest.mark.slow
def test_a_run_of_cage2_ends_by_its_orders_and_keeps_them_as_a_curve(tmp_path: Any) -> None:
    from sparring.training.records import metrics

    agent = sparring.train(
        "cage2",
        **{"runs": str(tmp_path), "quiet": True, "threads": 1, "updates": 400},
        **{"set": ["orders=DRAWN"], "collect": {"games": 16, "steps": 50}, "net": {"hidden": (8,)}},
        eval={"stop": ("order_kept=0.01",), "every_decisions": 4000, "games": 32, "final_games": 8},
    )
    assert agent.ended == "reached"
    curve = metrics.read(agent.run, "stats/order_kept")["stats/order_kept"]
    assert len(curve[0]) > 2
    *_, met = [one for one in events_of(agent.run) if one["event"] == MET]
    assert re.fullmatch(r"order_kept \S+ >= 0.01", met["found"][0])
    assert why_early(agent) == f"eval.stop is fulfilled: {met['found'][0]}"
    assert sparring.resume(str(agent.run), quiet=True).ended == "reached"
