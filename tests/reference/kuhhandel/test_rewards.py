"""The reward terms of the slow Kuhhandel (section 15)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference.kuhhandel import rewards
from reference.kuhhandel.helpers import (
    ACCEPT,
    AUCTION,
    COUNTER,
    COW,
    HORSE,
    MIN_RAISE,
    PASS,
    auction,
    lay,
    num,
    owned,
    play,
    start_trade,
    table,
)
from reference.kuhhandel.vectors import H, R, pile


@pytest.mark.parametrize(
    ("scores", "rank", "win"),
    [
        ([10, 5, 0], [1, 0, -1], [2 / 3, -1 / 3, -1 / 3]),
        ([10, 10, 0], [0.5, 0.5, -1], [1 / 6, 1 / 6, -1 / 3]),
        ([0, 0, 0], [0, 0, 0], [0, 0, 0]),
        ([3, 3, 9, 1], [0, 0, 1, -1], [-0.25, -0.25, 0.75, -0.25]),
        ([5, 4, 4, 4, 1], [1, 0, 0, 0, -1], [0.8, -0.2, -0.2, -0.2, -0.2]),
    ],
)
def test_rank_and_win(scores: list[int], rank: list[float], win: list[float]) -> None:
    assert [float(x) for x in rewards.rank_rewards(scores)] == pytest.approx(rank)
    assert [float(x) for x in rewards.win_rewards(scores)] == pytest.approx(win)
    assert sum(rewards.rank_rewards(scores)) == 0
    assert sum(rewards.win_rewards(scores)) == 0
    assert sum(rewards.score_zero_sum(scores)) == 0


def test_seed_terms_of_trades() -> None:
    assert rewards.seed_trade_cheap(0) == 1
    assert rewards.seed_trade_cheap(250) == Fraction("0.5")
    assert rewards.seed_trade_cheap(900) == 0
    assert rewards.seed_trade_paid(250) == Fraction("0.5")
    assert rewards.seed_trade_paid(900) == 1
    game, action = start_trade([2, 2, 0], [R, R, R])
    play(game, (0, action))
    lay(game, pile(100))
    game.step(COUNTER)
    play(game, *[(1, num(0))] * 4, (1, num(4)))
    terms = play(game, (1, num(0)))
    assert game.animals[0][COW] == 4
    # The winner gave 100 and received 40, so the net payment is 60.
    assert terms["seed_trade_won"] == [2, 0, 0]
    assert terms["seed_trade_cheap"] == pytest.approx([440 / 500, 0, 0])
    assert terms["seed_trade_lost"] == [0, 2, 0]
    assert terms["seed_trade_paid"] == pytest.approx([0, 60 / 500, 0])
    assert terms["seed_trade_lost_early"] == [0, 1, 0]
    assert terms["seed_quartet"] == [1, 0, 0]
    assert terms["potential"] == pytest.approx([0.08, 0, 0])
    paid = rewards.option_reward("SEED", terms)
    assert paid == pytest.approx([0.5 + 0.288, -0.282, 0])
    assert rewards.option_reward("SEED_AGGRESSIVE", terms) == pytest.approx([1.288, -0.282, 0])
    assert rewards.option_reward("SEED_WIN_ONLY", terms) == pytest.approx([0.5, 0, 0])


def test_seed_terms_of_bids_and_money() -> None:
    game = auction()
    assert play(game, (1, num(0)), (1, num(5)))["seed_overraise"] == pytest.approx([0, 0.4, 0])
    assert play(game, (2, MIN_RAISE))["seed_overraise"] == [0, 0, 0]
    game = auction([[2, 4, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0], H])
    terms = play(game, (1, PASS), (2, PASS))
    assert terms["seed_broke"] == [0, 1, 0]
    assert terms["seed_rich"] == [0, 0, 0]
    terms = play(game, (1, AUCTION), (2, PASS))
    assert terms["seed_rich"] == [1, 0, 0]


def test_a_quartet_of_the_last_card_is_not_early() -> None:
    animals = [[4] * 9 + [3], owned(), owned()]
    game = table(animals, deck=[HORSE])
    terms = play(game, (0, AUCTION), (1, PASS), (2, PASS))
    assert game.terminated
    assert terms["seed_quartet"] == [0, 0, 0]
    assert game.scores() == [38500, 0, 0]


def test_shaping_with_a_discount() -> None:
    """From one decision of a seat to its next it is paid g * F(now) - F(then)."""
    animals = [owned(pig=4), owned(), owned()]
    game = table(animals, potential_gamma=0.5)
    assert play(game, (0, AUCTION), (1, MIN_RAISE))["potential"] == [0, 0, 0]
    terms = game.step(PASS)  # seat 0 is to sell or buy
    assert terms["potential"] == pytest.approx([-0.5 * 0.065, 0, 0])
    game, action = start_trade([3, 1, 0], [H, H, H], potential_gamma=0.5)
    play(game, (0, action))
    lay(game, pile(50))
    assert game.step(ACCEPT)["potential"] == pytest.approx([0.08, 0, 0])
    terms = play(game, (1, AUCTION), (2, PASS))
    assert terms["potential"] == pytest.approx([-0.5 * 0.08, 0, 0])
