"""Main agents and exploiters: whom they meet, and when an exploiter begins anew."""

from __future__ import annotations

import json

import pytest

from sparring.errors import SparringError
from sparring.league.matchmaking import ArchivedPolicy, WinDrawLoss
from sparring.league.roles import (
    Attempt,
    AttemptLimits,
    allowed_opponents,
    default_limits,
    judge,
    sampling_for,
    worth_keeping,
)

TERMS = AttemptLimits(limit=1000, patience=300)


def of_share(share: float, games: float = 1000) -> WinDrawLoss:
    return WinDrawLoss(wins=share * games, losses=(1 - share) * games)


def test_an_exploiter_meets_main_agents_alone() -> None:
    known = [
        ArchivedPolicy(0, "a"),
        ArchivedPolicy(1, "b", role="exploiter"),
        ArchivedPolicy(2, "c"),
        ArchivedPolicy(3, "d", role="league-exploiter"),
    ]
    assert [one.number for one in allowed_opponents("main", known)] == [0, 1, 2, 3]
    assert [one.number for one in allowed_opponents("exploiter", known)] == [0, 2]
    assert allowed_opponents("league-exploiter", known) == known
    assert sampling_for("league-exploiter", "uniform", of_share(0.1)) == "pfsp"


def test_an_exploiter_meets_the_past_while_the_newest_is_hopeless() -> None:
    assert sampling_for("main", "pfsp", of_share(0.0)) == "pfsp"
    assert sampling_for("exploiter", "pfsp", of_share(0.5)) == "newest"
    assert sampling_for("exploiter", "pfsp", of_share(0.1)) == "pfsp-even"
    assert sampling_for("exploiter", "pfsp", of_share(0.1, games=20)) == "newest"


def test_seventy_percent_of_enough_games_is_won() -> None:
    attempt = Attempt()
    assert judge(attempt, of_share(0.69), 100, TERMS)[0] == "go on"
    assert judge(attempt, of_share(1.0, games=399), 100, TERMS)[0] == "go on"
    verdict, attempt = judge(attempt, of_share(0.7), 100, TERMS)
    assert verdict == "won"
    assert worth_keeping(verdict, attempt)
    assert judge(Attempt(), WinDrawLoss(wins=400, draws=600), 100, TERMS)[0] == "won"


def test_no_progress_for_long_is_stalled() -> None:
    attempt, verdicts = Attempt(), []
    for decisions, share in ((100, 0.3), (200, 0.4), (300, 0.41), (400, 0.41), (500, 0.39)):
        verdict, attempt = judge(attempt, of_share(share), decisions, TERMS)
        verdicts.append(verdict)
    assert verdicts == ["go on"] * 4 + ["stalled"]  # 300 since the 40 % at 200
    assert (attempt.best_share, attempt.best_at) == (pytest.approx(0.4), 200)
    assert worth_keeping("stalled", attempt)
    assert not worth_keeping("stalled", Attempt(best_share=0.1))
    assert not worth_keeping("go on", attempt)


def test_no_attempt_goes_on_for_ever() -> None:
    attempt, decisions = Attempt(began=5000, best_at=5000), 5000
    for step in range(9):
        decisions += 100
        verdict, attempt = judge(attempt, of_share(0.1 + step * 0.05), decisions, TERMS)
        assert verdict == "go on"
    assert judge(attempt, of_share(0.6), 6000, TERMS)[0] == "stalled"
    nobody_met = Attempt(began=0)
    assert judge(nobody_met, WinDrawLoss(), 300, TERMS)[0] == "stalled"


def test_the_next_attempt_counts_from_its_own_beginning() -> None:
    attempt = Attempt(began=0, best_share=0.6, best_at=900).restarted(1000)
    assert attempt == Attempt(began=1000, best_share=0.0, best_at=1000, number=2)
    assert judge(attempt, WinDrawLoss(), 1299, TERMS)[0] == "go on"
    assert Attempt.load(json.loads(json.dumps(attempt.state()))) == attempt
    with pytest.raises(SparringError, match="cannot be read"):
        Attempt.load({"color": 1})


def test_usual_terms_follow_the_snapshots() -> None:
    assert default_limits(1000) == AttemptLimits(limit=40_000, patience=10_000)
