"""What is kept of a pairing gives the same ratings, shares and intervals as its games."""

from __future__ import annotations

import pytest

from sparring import Rules
from sparring.league.arena import play_match
from sparring.league.outcomes import KeptPairing
from sparring.league.round_robin import RoundRobinSettings, play_round_robin, rate_pairings


@pytest.mark.parametrize("game", ["tic_tac_toe", "kuhhandel", "skull_king"])
def test_a_kept_round_robin_is_the_one_that_was_played(game: str) -> None:
    rules = Rules(game)
    whole = play_round_robin(rules, rules.bots[:3], RoundRobinSettings(games=120))
    kept = [KeptPairing.of(p.one, p.two, p.result, seed=0) for p in whole.pairings]
    for one, other in zip(kept, whole.pairings, strict=True):
        one.check()
        assert (one.games, one.deals) == (other.games, other.deals)
        assert one.distinct_deals == other.distinct_deals
        assert one.win_share == pytest.approx(other.win_share)
        assert one.win_interval == pytest.approx(other.win_interval)
    again = rate_pairings(rules, whole.names, kept)
    assert again.order == whole.order
    for row, first in zip(again.ratings, whole.ratings, strict=True):
        assert row.elo == pytest.approx(first.elo, abs=1e-6)
        assert (row.games, row.score) == (first.games, pytest.approx(first.score))
        # The bootstrap draws other numbers: the order of copies of one player is not kept.
        assert (row.high - row.low) == pytest.approx(first.high - first.low, rel=0.1, abs=1e-9)


def test_copies_of_one_player_are_exactly_equal() -> None:
    """Nobody owns a seat: every deal counts once from each of them."""
    result = play_match(Rules("skull_king"), ["captain"] * 4, games=100)
    kept = KeptPairing.of("one", "two", result, seed=0)
    assert (kept.games, result.seat_games) == (100, (25, 25, 25, 25))
    assert kept.win_share == pytest.approx(1 / 4)
