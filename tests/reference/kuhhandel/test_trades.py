"""Cow trades in the slow Kuhhandel: the vectors of section 18.5, and the flags of trades."""

from __future__ import annotations

from typing import Any

import pytest

from reference.kuhhandel import vectors
from reference.kuhhandel.helpers import (
    ACCEPT,
    COUNTER,
    COW,
    GOOSE,
    HORSE,
    lay,
    num,
    owned,
    play,
    start_trade,
    table,
)
from reference.kuhhandel.observation import blocks
from reference.kuhhandel.rules import offer_counts, total
from reference.kuhhandel.vectors import H, pile


@pytest.mark.parametrize("vector", vectors.TRADES, ids=lambda vector: vector["name"])
def test_trades(vector: dict[str, Any]) -> None:
    money = [*vector["money"], H]
    game, action = start_trade(vector["before"], money, **vector["config"])
    play(game, (0, action))
    for number, (offer, counter) in enumerate(vector["rounds"]):
        if game.phase == "OFFER":  # otherwise the offer was forced
            lay(game, offer)
        if number == 0:
            assert (game.phase, game.seat) == ("RESPOND", 1)
            assert game.deal.offer == offer
            game.step(ACCEPT if counter is None else COUNTER)
        if counter is not None and game.phase == "COUNTER" and number == game.deal.rebid:
            assert (game.seat, game.deal.offer) == (1, offer)
            lay(game, counter)
        if number + 1 < len(vector["rounds"]):
            assert game.deal.rebid
            assert game.deal.tied == total(offer)
    assert (game.phase, game.turn) == ("TURN", 1)
    assert [own[COW] for own in game.animals] == vector["after"]
    assert game.money == [*vector["money_after"], H]


def test_m02_trades_in_the_mask() -> None:
    animals = [owned(rooster=1, goose=2), owned(rooster=1), owned(goose=2)]
    game = table(animals)
    assert game.legal() == [0, 1, 12]
    game.step(12)
    assert (game.deal.target, game.deal.animal, game.deal.stake) == (2, GOOSE, 2)


def test_m03_composing_an_offer() -> None:
    game = table([owned(rooster=1), owned(rooster=1), owned()])
    play(game, (0, 1))
    assert game.legal() == [num(0), num(1)]
    play(game, (0, num(0)))
    assert game.legal() == [num(count) for count in range(5)]
    play(game, (0, num(0)))
    assert game.legal() == [num(1), num(2)]
    play(game, (0, num(2)))
    assert game.deal.offer == [2, 0, 0, 0, 0, 0]
    assert (game.phase, game.seat) == ("RESPOND", 1)
    for observer in range(3):
        assert blocks(game, observer)["TRD"][13] == 2 / 20


def test_m06_a_split_may_come_back() -> None:
    for reply, expected in ((ACCEPT, (3, 0, 1)), (COUNTER, (1, 2, 1))):
        rich = [4] * 9 + [2]
        game = table([rich, owned(horse=1), owned(horse=1)], deck=[])
        play(game, (0, 10))
        assert game.deal.stake == 1
        lay(game, pile(0))
        play(game, (1, reply))
        if reply == COUNTER:
            lay(game, pile(10))
        assert tuple(own[HORSE] for own in game.animals) == expected
        assert not game.terminated


def test_m09_the_target_does_not_see_the_offer() -> None:
    seen = []
    for offer in (pile(50, 0), pile(10, 10)):
        game = table([owned(rooster=1), owned(rooster=1), owned()])
        play(game, (0, 1))
        lay(game, offer)
        assert (game.phase, game.seat) == ("RESPOND", 1)
        seen.append([game.observe(observer) for observer in range(3)])
    assert seen[0][1:] == seen[1][1:]
    assert seen[0][0] != seen[1][0]


def test_empty_offers() -> None:
    assert offer_counts([0, 2, 0, 0, 0, 0], [0] * 6, 1) == [1, 2]
    assert offer_counts([0, 2, 0, 0, 0, 0], [0] * 6, 1, may_be_empty=True) == [0, 1, 2]
    game, action = start_trade([1, 1, 2], [H, H, H], empty_offer=1)
    play(game, (0, action))
    lay(game, pile())
    assert (game.phase, sum(game.deal.offer)) == ("RESPOND", 0)
    game.step(COUNTER)
    lay(game, pile())
    assert game.deal.rebid
    lay(game, pile())
    lay(game, pile())
    assert (game.phase, game.animals[0][COW]) == ("TURN", 2)


def test_zeros_may_return() -> None:
    for reply, expected in (
        (None, [[2, 4, 0, 0, 0, 0], [2, 4, 2, 0, 0, 0]]),
        (pile(0, 10), [[2, 5, 0, 0, 0, 0], [2, 3, 2, 0, 0, 0]]),
    ):
        game, action = start_trade([1, 1, 2], [H, H, H], zeros_return=1)
        play(game, (0, action))
        lay(game, pile(50, 0))
        game.step(ACCEPT if reply is None else COUNTER)
        if reply is not None:
            lay(game, reply)
        assert game.money[:2] == expected
        # The third player saw one card go away from seat 0.
        assert game.known[2][0] == [1, 3, 0, 0, 0, 0]


def test_piles_may_return_after_ties() -> None:
    hands = [[0, 5, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], H]
    game, action = start_trade([1, 1, 2], hands, tie_money="TAKE_BACK")
    play(game, (0, action))
    lay(game, pile(*[10] * 5))
    game.step(COUNTER)
    assert (game.phase, game.seat, game.deal.tied) == ("OFFER", 0, 50)
    assert game.money == hands
    lay(game, pile(*[10] * 5))
    assert game.phase == "TURN"
    assert game.money == hands
    assert game.animals[0][COW] == 2
