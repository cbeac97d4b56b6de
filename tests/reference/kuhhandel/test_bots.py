"""The scripted opponents of the slow Kuhhandel (section 17)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference.kuhhandel import bots
from reference.kuhhandel.game import Kuhhandel
from reference.kuhhandel.helpers import (
    AUCTION,
    BUY,
    COUNTER,
    MIN_RAISE,
    PASS,
    PIG,
    SELL,
    auction,
    final_trades,
    lay,
    num,
    owned,
    play,
    start_trade,
    table,
)
from reference.kuhhandel.rules import ANIMALS
from reference.kuhhandel.vectors import H, R, pile
from reference.philox import BOTS, CHANCE, Philox


class Scripted:
    """Random numbers from a list; counts what was drawn."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def u32(self) -> int:
        return self.words.pop(0)

    def below(self, m: int) -> int:
        word = self.words.pop(0)
        assert 0 <= word < m
        return word


HALF = 1 << 31


def test_claims() -> None:
    animals = [owned(pig=4, rooster=4, dog=3), owned(dog=1), owned()]
    game = table(animals)
    # F10: the last dog adds 1140; a third of what a whole quartet adds for the player with one.
    assert bots.claim(game, 0, ANIMALS.index("dog"), 1) == 1140
    assert bots.claim(game, 1, ANIMALS.index("dog"), 1) == Fraction(160, 3)
    assert bots.claim(game, 1, ANIMALS.index("dog"), 2) == Fraction(320, 3)
    assert bots.claim(game, 0, PIG, 1) == 0


def test_dealer_bids_what_it_can_pay() -> None:
    hands = [R, [0, 0, 1, 2, 0, 0], H]
    game = auction(hands)
    # value = 250 + .35 * 250, cap = min(202.5, 175) * 1.0 = 175, rounded to 170.
    assert game.bot("dealer", Scripted(HALF, 16)) == PASS  # 170 needs 200
    assert game.bot("dealer", Scripted(HALF, 14)) == num(1)  # 150 is payable
    assert game.bot("dealer", Scripted(HALF, 10)) == num(1)  # 110 is raised to 150
    assert game.bot("dealer", Scripted(HALF, 0)) == num(0)  # 10 is raised to 50
    play(game, (1, num(1)))
    assert game.bot("dealer", Scripted(HALF, 10)) == num(5)
    assert game.bot("dealer", Scripted(HALF, 9)) == num(0)
    # 170 fails and 50 has no hundred, so both are drawn again.
    assert game.bot("dealer", Scripted(HALF, 16, HALF, 0, HALF, 9)) == num(0)
    play(game, (1, num(7)))
    assert (game.seat, game.bot("dealer", Scripted(HALF))) == (2, PASS)  # 170 is too much


def test_dealer_decides_pays_and_counters() -> None:
    game = auction([R, R, R])
    play(game, (1, num(0)), (1, num(8)), (2, PASS))
    # value = 1000 / 4 * 1.35 = 337.5; a quarter of it is more than 80 and less than 90.
    assert game.bot("dealer", Scripted()) == BUY
    game = auction([R, R, R])
    play(game, (1, num(0)), (1, num(9)), (2, PASS))
    assert game.bot("dealer", Scripted()) == SELL
    play(game, (0, BUY))
    assert game.pile.denomination == 5
    chosen = []
    while game.phase == "PAY":
        chosen.append(game.bot("dealer", Scripted()) - 47)
        game.step(num(chosen[-1]))
    assert chosen == [0, 0, 0]
    assert game.money[0] == [2, 0, 0, 1, 1, 1]
    game, action = start_trade([1, 1, 2], [H, H, H])
    play(game, (0, action))
    lay(game, pile(0))
    assert game.bot("dealer", Scripted()) == COUNTER


def test_dealer_lays_the_largest_sum_below_its_limit() -> None:
    game, action = start_trade([1, 1, 2], [R, R, R])
    play(game, (0, action))
    # Stake value 800 / 3 * 1.35 = 360, times .75 = 270, times .75 = 202.
    chosen = []
    while game.phase == "OFFER":
        chosen.append(game.bot("dealer", Scripted(HALF)) - 47)
        game.step(num(chosen[-1]))
    assert game.deal.offer == pile(200)
    game, action = start_trade([1, 1, 2], [[0, 0, 0, 0, 0, 2], H, H])
    play(game, (0, action))
    assert game.bot("dealer", Scripted(HALF)) == num(1)  # nothing fits: the lowest card
    game, action = start_trade([1, 1, 2], [[1, 0, 0, 0, 0, 2], H, H])
    play(game, (0, action))
    assert game.bot("dealer", Scripted(HALF)) == num(0)


def test_dealer_goes_on_from_what_another_began() -> None:
    game = auction([R, [2, 4, 1, 0, 0, 0], R])
    play(game, (1, num(2)))  # more than it would ever bid
    rng = Philox(3, 0, 0, BOTS)
    assert game.bot("dealer", rng) == game.legal()[0]
    assert rng.drawn >= bots.TRIES


def test_dealer_chooses_trades() -> None:
    animals = [owned(rooster=3, horse=1), owned(rooster=1, horse=1), owned(horse=2)]
    assert table(animals, top=None).bot("dealer", Scripted()) == AUCTION  # the horse is worth more
    animals = [owned(rooster=3), owned(rooster=1), owned()]
    assert table(animals).bot("dealer", Scripted()) == 1
    rest = [4, 4, 4, 4, 4, 4, 4, 0, 0, 0]
    animals = [
        [*rest[:7], 1, 2, 1],
        owned(pig=1, cow=2, horse=1),
        owned(pig=2, horse=2),
    ]
    assert table(animals, deck=[]).bot("dealer", Scripted()) == 9  # completes the cows
    animals = [[*rest[:7], 1, 1, 1], owned(pig=1, cow=3, horse=2), owned(pig=2, horse=1)]
    game = table(animals, deck=[])
    assert game.bot("dealer", Scripted()) == 20  # equal counts of horses, worth more than pigs


def test_thrifty() -> None:
    game = auction()
    # Weights 1, 1/2, .. 1/10 for pass and 10 to 90; the first covers 1 / H(10) = .341.
    harmonic = sum(1 / i for i in range(1, 11))
    assert game.bot("thrifty", Scripted(0)) == PASS
    assert game.bot("thrifty", Scripted(int(0.99 / harmonic * 2**32))) == PASS
    assert game.bot("thrifty", Scripted(int(1.01 / harmonic * 2**32))) == MIN_RAISE
    assert game.bot("thrifty", Scripted(2**32 - 1)) == num(0)
    play(game, (1, num(0)))
    assert game.bot("thrifty", Scripted(0)) == num(2)
    assert game.bot("thrifty", Scripted(2**32 - 1)) == num(9)
    play(game, (1, num(5)), (2, PASS))
    assert game.bot("thrifty", Scripted(0)) == SELL
    assert game.bot("thrifty", Scripted(2**32 - 1)) == BUY
    game = table([owned(rooster=1, goose=2), owned(rooster=1), owned(goose=2)])
    assert game.bot("thrifty", Scripted()) == AUCTION
    game = final_trades((1, 0, 3))
    assert game.bot("thrifty", Scripted(0)) == 20


@pytest.mark.slow
def test_dealer_beats_random_and_thrifty() -> None:
    for weak in ("random", "thrifty"):
        won = 0
        for number in range(8):
            config = {"num_players": 4, "bluff": "FORBID"}
            game = Kuhhandel(config, Philox(9, number, 0, CHANCE))
            game.reset()
            rng = Philox(9, number, 0, BOTS)
            while not game.over:
                name = "dealer" if game.seat % 2 == number % 2 else weak
                game.step(game.bot(name, rng))
            scores = game.scores()
            won += scores.index(max(scores)) % 2 == number % 2
        assert won >= 7
