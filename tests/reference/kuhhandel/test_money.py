"""Payments, donkeys and who knows whose money in the slow Kuhhandel."""

from __future__ import annotations

import random

import pytest

from reference.kuhhandel import vectors
from reference.kuhhandel.helpers import (
    A02,
    AUCTION,
    COUNTER,
    DONKEY,
    PASS,
    SELL,
    auction,
    lay,
    num,
    owned,
    play,
    start_trade,
    table,
)
from reference.kuhhandel.rules import (
    KINDS,
    auto_payment,
    largest_pile,
    minimal_payments,
    payment_counts,
    payment_order,
    piles,
    total,
)
from reference.kuhhandel.vectors import H, R, pile


def composed_payments(hand: list[int], price: int) -> list[list[int]]:
    """Every payment that can be reached by naming counts."""
    found = []

    def walk(selected: list[int], denomination: int) -> None:
        if total(selected) >= price:
            found.append(selected)
            return
        assert denomination > 0
        counts = payment_counts(hand, price, selected, denomination)
        assert counts
        for count in counts:
            chosen = list(selected)
            chosen[denomination] = count
            walk(chosen, denomination - 1)

    walk([0] * 6, 5)
    return found


@pytest.mark.parametrize(("name", "hand", "price", "auto", "sets"), vectors.PAYMENTS)
def test_payments(
    name: str, hand: list[int], price: int, auto: list[int], sets: list[list[int]]
) -> None:
    assert auto_payment(hand, price) == auto
    assert sorted(minimal_payments(hand, price)) == sorted(sets)
    assert sorted(composed_payments(hand, price)) == sorted(sets)


def test_payments_against_all_piles_of_a_hand() -> None:
    rng = random.Random(5)
    for _ in range(300):
        hand = [rng.randint(0, 2), *(rng.randint(0, most) for most in (6, 3, 3, 2, 2))]
        if total(hand) == 0:
            continue
        price = 10 * rng.randint(1, total(hand) // 10)
        payments = minimal_payments(hand, price)
        assert sorted(composed_payments(hand, price)) == sorted(payments)
        assert auto_payment(hand, price) == min(payments, key=payment_order)
        fitting = [pile for pile in piles([0, *hand[1:]]) if total(pile) <= price]
        best = min(fitting, key=lambda pile: (-total(pile), payment_order(pile)))
        assert largest_pile(hand, price) == best


@pytest.mark.parametrize(("donkeys", "each", "circulation"), vectors.DONKEYS)
def test_donkeys(donkeys: int, each: int, circulation: int) -> None:
    game = table(deck=[DONKEY] * 4 + [k for k in range(KINDS) for _ in range(4) if k != DONKEY])
    for _ in range(donkeys):
        game.step(AUCTION)
        game.step(PASS)
        game.step(PASS)
    assert [total(hand) for hand in game.money] == [each] * 3
    assert game.circulation() == circulation
    assert game.donkeys == donkeys
    assert all(game.known[p][q] == game.money[q] for p in range(3) for q in range(3))


def test_automatic_payment() -> None:
    game = auction(pay_mode="AUTO")
    play(game, *A02, (0, SELL))
    assert game.phase == "TURN"
    assert game.money[0] == [2, 6, 1, 0, 0, 0]


def test_open_payment_is_known_to_all() -> None:
    game = auction(open_pay=1)
    play(game, *A02, (0, SELL), (2, num(0)))
    assert all(game.known[p][q] == game.money[q] for p in range(3) for q in range(3))


def test_forced_counts_are_decisions_without_auto_forced() -> None:
    game = auction([H, [2, 0, 2, 0, 0, 0], H], auto_forced=0)
    play(game, (1, num(0)), (1, num(3)), (2, PASS), (0, SELL))
    assert (game.phase, game.seat) == ("PAY", 1)
    assert game.legal() == [num(1)]
    hand = [2, 4, 2, 1, 1, 1]
    game = table(
        animals=[owned(donkey=4), *[owned()] * 4], money=[hand] * 5, num_players=5, auto_forced=0
    )
    play(game, (0, AUCTION), (1, num(47)))
    assert (game.phase, game.legal()) == ("TENS", [num(0)])
    # The empty pile is laid without a decision all the same.
    game, action = start_trade([1, 1, 2], [vectors.NO_MONEY, H, H], auto_forced=0)
    play(game, (0, action))
    assert game.phase == "RESPOND"


def test_m07_knowledge_after_a_hidden_payment() -> None:
    game = auction()
    play(game, *A02, (0, SELL), (2, num(0)))
    assert game.known[1][2] == [0, 2, 0, 0, 0, 0]
    assert sum(game.money[2]) - 2 == 3
    assert game.known[1][0] == [2, 4, 1, 0, 0, 0]
    assert sum(game.money[0]) - 7 == 2
    assert game.known[0][2] == game.money[2]
    assert game.known[2][0] == game.money[0]


def test_an_exchange_is_simultaneous_for_knowledge() -> None:
    game, action = start_trade([1, 1, 2], [R, R, R])
    for a, b in ((0, 1), (1, 0)):
        game.known[a][b] = [0] * 6
    play(game, (0, action))
    lay(game, pile(10))
    game.step(COUNTER)
    lay(game, pile(10, 10))
    # Each gave tens the other did not know of and holds for certain what he received.
    assert game.known[0][1] == [0, 1, 0, 0, 0, 0]
    assert game.known[1][0] == [0, 2, 0, 0, 0, 0]
    assert game.known[2][0] == [1, 3, 0, 0, 0, 0]
    assert game.known[2][1] == [0, 2, 0, 0, 0, 0]
