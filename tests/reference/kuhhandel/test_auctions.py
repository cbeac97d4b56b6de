"""Bids, bluffs and sales in the slow Kuhhandel: the vectors of section 18.2 and repetitions."""

from __future__ import annotations

from reference.kuhhandel.game import Kuhhandel
from reference.kuhhandel.helpers import (
    A02,
    AUCTION,
    BUY,
    DONKEY,
    MIN_RAISE,
    PASS,
    SELL,
    auction,
    num,
    owned,
    play,
    table,
)
from reference.kuhhandel.vectors import H


def test_a01_nobody_bids() -> None:
    game = auction()
    terms = play(game, (1, PASS), (2, PASS))
    assert game.animals[0] == owned(horse=1)
    assert game.money == [H, H, H]
    assert (game.phase, game.turn, game.seat) == ("TURN", 1, 1)
    assert terms["seed_free"] == [1, -1, -1]


def test_a02_sold() -> None:
    game = auction()
    play(game, *A02, (0, SELL))
    assert (game.phase, game.pile.denomination) == ("PAY", 2)
    assert game.legal() == [num(0), num(1)]
    terms = play(game, (2, num(0)))
    assert game.money == [[2, 6, 1, 0, 0, 0], H, [2, 2, 1, 0, 0, 0]]
    assert game.animals[2] == owned(horse=1)
    assert (game.phase, game.turn) == ("TURN", 1)
    assert terms["seed_auction_won"] == [0, 0, 1]


def test_a03_bought() -> None:
    game = auction()
    terms = play(game, *A02, (0, BUY), (0, num(0)))
    assert game.money == [[2, 2, 1, 0, 0, 0], H, [2, 6, 1, 0, 0, 0]]
    assert game.animals[0] == owned(horse=1)
    assert terms["seed_bought"] == [1, 0, 0]
    assert terms["seed_was_paid"] == [0, 0, 1]


def test_a04_no_change_is_given() -> None:
    game = auction()
    play(game, *A02, (0, SELL), (2, num(1)))
    assert game.money == [[2, 4, 2, 0, 0, 0], H, [2, 4, 0, 0, 0, 0]]


def test_a05_soft_and_hard_passes() -> None:
    game = auction()
    play(game, (1, PASS), (2, MIN_RAISE))
    assert (game.phase, game.seat) == ("BID", 1)
    game = auction(pass_mode="HARD")
    play(game, (1, PASS), (2, MIN_RAISE))
    assert (game.phase, game.seat) == ("DECIDE", 0)


def test_a06_jump_bid_and_forced_payment() -> None:
    game = auction([H, [2, 0, 2, 0, 0, 0], H])
    play(game, (1, num(0)))
    assert game.phase == "TENS"
    assert game.legal() == [num(digit) for digit in range(2, 10)]
    play(game, (1, num(3)))
    assert game.now.high == 30
    play(game, (2, PASS), (0, SELL))
    assert game.phase == "TURN"
    assert game.money == [[2, 4, 2, 0, 0, 0], [2, 0, 1, 0, 0, 0], H]


A07 = ((1, MIN_RAISE), (2, num(1)), (2, num(5)), (1, PASS))


def donkey_auction() -> Kuhhandel:
    game = auction(top=DONKEY)
    assert game.money == [[2, 4, 2, 0, 0, 0]] * 3
    play(game, *A07)
    return game


def test_a07_the_auctioneer_cannot_afford_it() -> None:
    game = donkey_auction()
    assert (game.phase, game.seat, game.now.high) == ("DECIDE", 0, 150)
    assert game.legal() == [SELL]


def test_a08_a09_a_called_bluff() -> None:
    game = donkey_auction()
    for player in (0, 1):
        game.known[player][2] = [0] * 6
    play(game, (0, SELL))
    assert all(game.known[player][2] == game.money[2] for player in range(3))
    assert game.is_excluded(2)
    assert (game.phase, game.seat, game.now.high) == ("BID", 1, 0)
    play(game, (1, MIN_RAISE))
    assert (game.phase, game.now.high) == ("DECIDE", 10)
    play(game, (0, SELL), (1, num(0)))
    assert game.money[:2] == [[2, 5, 2, 0, 0, 0], [2, 3, 2, 0, 0, 0]]
    assert game.animals[1] == owned(donkey=1)


def test_a10_a_bluff_that_is_bought_stays_hidden() -> None:
    game = auction([[2, 4, 1, 1, 0, 0], H, H])
    play(game, (1, PASS), (2, num(1)), (2, num(5)), (1, PASS), (0, BUY))
    assert game.phase == "TURN"
    assert game.money == [[2, 4, 0, 0, 0, 0], H, [2, 4, 2, 1, 0, 0]]
    assert game.animals[0] == owned(horse=1)
    # M08: seat 1 saw two cards go from 0 to 2.
    assert game.known[1][2] == H
    assert sum(game.money[2]) - sum(game.known[1][2]) == 2
    assert game.known[1][0] == [0, 2, 0, 0, 0, 0]
    assert sum(game.money[0]) - sum(game.known[1][0]) == 4


A11 = ((1, num(1)), (1, num(0)), (2, PASS), (0, SELL))


def test_a11_everybody_bluffs() -> None:
    game = auction()
    play(game, *A11)
    assert game.is_excluded(1)
    play(game, (2, num(2)), (2, num(0)), (0, SELL))
    assert game.animals[0] == owned(horse=1)
    assert game.money == [H, H, H]
    assert (game.phase, game.turn) == ("TURN", 1)
    assert [event[0] for event in game.events] == [1, 2, 3, 7, 2, 7, 6]


def test_a12_bids_within_own_money() -> None:
    game = auction(bluff="FORBID")
    play(game, (1, num(0)), (1, num(8)))
    assert game.legal() == [PASS, MIN_RAISE]
    play(game, (2, MIN_RAISE))
    assert (game.phase, game.seat) == ("DECIDE", 0)
    assert game.now.passed == [False, True, False]


def test_a13_opening_mask() -> None:
    game = auction()
    assert game.bid_limit(1) == 270
    assert game.legal() == [41, 42, 47, 48, 49]


def test_a14_the_highest_bid_of_all() -> None:
    hand = [2, 4, 2, 1, 1, 1]
    animals = [owned(donkey=4), *[owned()] * 4]
    game = table(animals=animals, money=[hand] * 5, num_players=5)
    assert game.donkeys == 4
    game.step(AUCTION)
    assert len(game.legal()) == 50
    play(game, (1, num(47)))
    assert (game.phase, game.now.high, game.seat) == ("DECIDE", 4700, 0)
    assert game.legal() == [SELL]


def test_a15_smallest_jump() -> None:
    hand = [2, 4, 2, 1, 1, 1]
    animals = [owned(donkey=4), *[owned()] * 4]
    game = table(animals=animals, money=[hand] * 5, num_players=5)
    play(game, (0, AUCTION), (1, num(9)), (1, num(8)))
    assert game.now.high == 980
    assert game.legal()[:3] == [PASS, MIN_RAISE, num(10)]
    play(game, (2, MIN_RAISE))
    assert game.now.high == 990


def test_a16_order_of_asking() -> None:
    game = table(num_players=4)
    play(game, (0, AUCTION), (1, PASS), (2, MIN_RAISE), (3, PASS))
    assert game.seat == 1
    play(game, (1, MIN_RAISE), (2, PASS), (3, PASS))
    assert (game.phase, game.now.high) == ("DECIDE", 20)


def test_a17_a_capped_bluffer() -> None:
    game = auction(bluff="CAP")
    play(game, *A11)
    assert (game.seat, game.bid_limit(1), game.bid_limit(2)) == (1, 90, 270)
    assert not game.is_excluded(1)
    assert game.legal() == [PASS, MIN_RAISE, num(0)]
    play(game, (1, num(0)), (1, num(9)), (2, MIN_RAISE))
    assert (game.phase, game.now.high) == ("DECIDE", 100)


def test_a_repeated_auction_starts_from_zero() -> None:
    game = table(num_players=4, pass_mode="HARD")
    play(game, (0, AUCTION), (1, PASS), (2, num(3)), (2, num(0)), (3, PASS), (0, SELL))
    assert game.now.exposed == [False, False, True, False]
    assert game.now.passed == [False] * 4
    assert game.now.last_bid == [0] * 4
    play(game, (1, MIN_RAISE), (3, PASS))
    assert (game.phase, game.now.high, game.now.high_bidder) == ("DECIDE", 10, 1)


def test_nobody_is_asked_without_money() -> None:
    game = table(money=[H, [3, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]], bluff="FORBID")
    play(game, (0, AUCTION))
    assert (game.phase, game.seat) == ("TURN", 1)
    assert game.animals[0] == owned(horse=1)
    assert [event[:2] for event in game.events] == [(1, 0), (3, 1), (3, 2), (6, 0)]
