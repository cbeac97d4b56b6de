"""The conformance test finds games that do not keep what they declare."""

from __future__ import annotations

from typing import Any

import pytest

from sparring import Rules, State, _native
from sparring.proof.conformance import check_chance, check_flags, check_hidden_information
from sparring.proof.random_games import Broken


@pytest.mark.parametrize("game", ["tic_tac_toe", "shogi", "rock_paper_scissors"])
def test_games_without_chance_play_the_same_from_any_seed(game: str) -> None:
    rules = Rules(game)
    assert not rules.chance
    assert "from another seed" in check_chance(rules, 2, 0)


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel", "cage2", "laser_hockey", "duel"])
def test_a_game_that_hides_its_chance_is_found_out(game: str) -> None:
    rules = Rules(game)
    assert rules.chance
    assert check_chance(rules, 2, 0) == "the game has chance"
    rules.chance = False
    with pytest.raises(Broken, match=r"seeds 0 and 1 differ .* leave chance = false out"):
        check_chance(rules, 2, 0)


class WithMember:
    """The native side of a header whose Config has one more i32, which `config_fields` forgot."""

    def __init__(self, native: Any) -> None:
        self.native = native
        self.config_bytes = native.config_bytes[: len(native.config_bytes) // 4 * 4] + bytes(4)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.native, name)


@pytest.mark.parametrize(("game", "named"), [("tic_tac_toe", 0), ("kuhn_poker", 1), ("duel", 3)])
def test_a_member_of_config_that_nobody_can_set_is_found(game: str, named: int) -> None:
    rules = Rules(game)
    rules.native = WithMember(rules.native)
    with pytest.raises(Broken, match=f"holds {named + 1} numbers, .* names {named}:"):
        check_flags(rules, 1, 0)


@pytest.mark.parametrize("game", _native.game_names())
def test_every_member_of_config_can_be_set(game: str) -> None:
    assert "can be set" in check_flags(Rules(game), 1, 0)


def test_a_leak_is_named_by_its_decision_and_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = State.observe_bytes
    monkeypatch.setattr(State, "observe_bytes", lambda self, seat: honest(self, 1 - seat))
    told = r"seed \d+, decision \d+: seat [01] sees what is hidden: feature .+ changed"
    with pytest.raises(Broken, match=told):
        check_hidden_information(Rules("kuhn_poker"), 5, 0)
