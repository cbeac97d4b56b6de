"""The conformance test finds games that do not keep what they declare."""

from __future__ import annotations

import pytest

from sparring import Rules
from sparring.proof.conformance import Broken, check_chance


@pytest.mark.parametrize("game", ["tic_tac_toe", "shogi", "rock_paper_scissors"])
def test_games_without_chance_play_the_same_from_any_seed(game: str) -> None:
    rules = Rules(game)
    assert not rules.chance
    assert "from another seed" in check_chance(rules, 2, 0)


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel", "cage2", "laser_hockey", "duel"])
def test_a_game_that_hides_its_chance_is_found_out(game: str) -> None:
    rules = Rules(game)
    assert rules.chance
    assert check_chance(rules, 2, 0) == "chance has a part"
    rules.chance = False
    with pytest.raises(Broken, match=r"seeds 0 and 1 differ .* leave chance = false out"):
        check_chance(rules, 2, 0)
