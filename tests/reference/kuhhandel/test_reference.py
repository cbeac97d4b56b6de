"""The reference game against the vectors of section 18 and the properties of section 19."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from reference.kuhhandel import bots, rewards, vectors
from reference.kuhhandel.config import ALLOWED, DEFAULTS, PRESETS, checked_config
from reference.kuhhandel.game import Kuhhandel
from reference.kuhhandel.observation import blocks
from reference.kuhhandel.rules import (
    ACTIONS,
    ANIMALS,
    DONKEY_PAYOUTS,
    KINDS,
    MONEY_VALUES,
    QUARTET_VALUES,
    START_HAND,
    TRADE_PHASES,
    auto_payment,
    is_minimal_payment,
    largest_pile,
    minimal_payments,
    offer_counts,
    payment_counts,
    payment_order,
    piles,
    score,
    stake,
    total,
)
from reference.kuhhandel.vectors import H, R, pile
from reference.philox import BOTS, CHANCE, Philox

AUCTION, PASS, MIN_RAISE, SELL, BUY, ACCEPT, COUNTER = 0, 41, 42, 43, 44, 45, 46
ROOSTER, GOOSE, DONKEY, PIG, COW, HORSE = 0, 1, 6, 7, 8, 9


def num(number: int) -> int:
    return 47 + number


def owned(**cards: int) -> list[int]:
    """Animals of one player: owned(cow=2)."""
    return [cards.get(name, 0) for name in ANIMALS]


def deck_for(animals: Sequence[Sequence[int]], top: int | None = None) -> list[int]:
    """All cards nobody owns, one of kind `top` first."""
    left = [kind for kind in range(KINDS) for _ in range(4 - sum(own[kind] for own in animals))]
    if top is not None:
        left.remove(top)
        left.insert(0, top)
    return left


def table(
    animals: Sequence[Sequence[int]] | None = None,
    money: Sequence[Sequence[int]] | None = None,
    top: int | None = HORSE,
    turn: int = 0,
    deck: Sequence[int] | None = None,
    **config: Any,
) -> Kuhhandel:
    """A position at the beginning of a turn; without `deck` it holds what nobody owns."""
    game = Kuhhandel(config)
    animals = [owned()] * game.num_players if animals is None else animals
    money = [H] * game.num_players if money is None else money
    cards = deck_for(animals, top) if deck is None else deck
    game.load(cards, animals, money, turn)
    return game


def auction(
    money: Sequence[Sequence[int]] | None = None, top: int = HORSE, **config: Any
) -> Kuhhandel:
    """Seat 0 has just turned up the top card."""
    game = table(money=money, top=top, **config)
    game.step(AUCTION)
    return game


def play(game: Kuhhandel, *moves: tuple[int, int]) -> dict[str, list[float]]:
    """Play (seat, action) pairs and check whose turn it is; the summed reward terms."""
    summed: dict[str, list[float]] = {t: [0.0] * game.num_players for t in rewards.TERMS}
    for seat, action in moves:
        assert game.seat == seat
        for name, values in game.step(action).items():
            summed[name] = [a + b for a, b in zip(summed[name], values, strict=True)]
    return summed


def lay(game: Kuhhandel, cards: Sequence[int]) -> None:
    """Name the counts of a pile, as far as there is a choice."""
    composing = game.pile
    while game.composing is composing:
        game.step(num(cards[composing.denomination]))


def start_trade(
    before: Sequence[int], money: Sequence[Sequence[int]], **config: Any
) -> tuple[Kuhhandel, int]:
    animals = [owned(cow=count) for count in before]
    game = table(animals=animals, money=money, top=None, **config)
    return game, 1 + COW


# 18.1 to 18.5


@pytest.mark.parametrize(("name", "animals", "points"), vectors.SCORES)
def test_scores(name: str, animals: dict[str, int], points: int) -> None:
    assert score(owned(**animals)) == points


def test_f10_completing_a_quartet() -> None:
    before, after = owned(pig=4, rooster=4), owned(pig=4, rooster=4, dog=4)
    assert score(after) - score(before) == 660 + 3 * 160 == 1140
    assert score(after) == 2460


def test_a01_nobody_bids() -> None:
    game = auction()
    terms = play(game, (1, PASS), (2, PASS))
    assert game.animals[0] == owned(horse=1)
    assert game.money == [H, H, H]
    assert (game.phase, game.turn, game.seat) == ("TURN", 1, 1)
    assert terms["seed_free"] == [1, -1, -1]


A02 = ((1, MIN_RAISE), (2, MIN_RAISE), (1, PASS))


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


# 18.6


def test_m01_first_turn() -> None:
    game = Kuhhandel()
    game.reset()
    assert game.legal() == [0]


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


def final_trades(horses: tuple[int, int, int], **config: Any) -> Kuhhandel:
    rich = [4] * 8 + [0, horses[0]]
    animals = [rich, owned(cow=4, horse=horses[1]), owned(horse=horses[2])]
    return table(animals, deck=[], **config)


def test_m04_a_player_without_trades_is_skipped() -> None:
    game = final_trades((1, 0, 3))
    assert game.legal() == [20]
    play(game, (0, 20))
    lay(game, pile(10))
    play(game, (2, ACCEPT))
    assert game.seat == 2
    assert game.legal() == [10]


def test_m05_the_end() -> None:
    game = final_trades((1, 0, 3))
    play(game, (0, 20))
    lay(game, pile(0))
    game.step(COUNTER)
    terms = play(game, (2, num(0)), (2, num(1)), (2, num(0)))
    assert (game.phase, game.terminated, game.end, game.seat) == ("DONE", True, "quartets", -1)
    assert game.scores() == [16400, 800, 1000]
    assert terms["rank"] == [1, -1, 0]
    assert terms["win"] == pytest.approx([2 / 3, -1 / 3, -1 / 3])
    assert terms["score_zs"] == pytest.approx([1.55, -0.79, -0.76])
    assert terms["potential"] == pytest.approx([0, 0, 0.1])
    assert terms["seed_final_win"] == [1, 0, 0]
    assert game.legal() == []


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


def test_m07_knowledge_after_a_hidden_payment() -> None:
    game = auction()
    play(game, *A02, (0, SELL), (2, num(0)))
    assert game.known[1][2] == [0, 2, 0, 0, 0, 0]
    assert sum(game.money[2]) - 2 == 3
    assert game.known[1][0] == [2, 4, 1, 0, 0, 0]
    assert sum(game.money[0]) - 7 == 2
    assert game.known[0][2] == game.money[2]
    assert game.known[2][0] == game.money[0]


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


# Flags and what the specification leaves open


def test_configuration() -> None:
    assert checked_config(None) == DEFAULTS
    assert DEFAULTS["max_decisions"] == 4000
    assert checked_config(PRESETS["SEED"])["tie_rounds"] == 1
    assert checked_config(PRESETS["FAST"])["pass_mode"] == "HARD"
    assert checked_config(PRESETS["OFFICIAL"]) == DEFAULTS
    for wrong in (
        {"num_players": 2},
        {"num_players": 6},
        {"edition": 1},
        {"bluff": "NO"},
        {"tie_rounds": 3},
        {"max_decisions": 1},
        {"potential_gamma": 1.5},
        {"reward": "SCORE"},
        {"unknown": 1},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            checked_config(wrong)


def test_reset_draws_the_deck_and_then_the_first_player() -> None:
    for seed in range(20):
        chance = Philox(seed, 3, 1, CHANCE)
        game = Kuhhandel({"num_players": 5}, chance)
        game.reset()
        rng = Philox(seed, 3, 1, CHANCE)
        deck = sorted(list(range(KINDS)) * 4)
        for i in range(39):
            j = i + rng.below(40 - i)
            deck[i], deck[j] = deck[j], deck[i]
        assert game.deck == deck
        assert game.turn == game.seat == rng.below(5)
        assert chance.drawn == rng.drawn
    firsts = set()
    for seed in range(40):
        game = Kuhhandel({"num_players": 5}, Philox(seed, 0, 1, CHANCE))
        game.reset()
        firsts.add(game.turn)
    assert firsts == set(range(5))


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


@pytest.mark.parametrize("at_limit", ["CUT", "SCORE"])
def test_the_limit_of_decisions(at_limit: str) -> None:
    config = {"max_decisions": 8, "at_limit": at_limit, "potential_gamma": 0.5}
    game = Kuhhandel(config, Philox(1, 0, 1, CHANCE))
    animals = [owned(pig=4), owned(cow=4), owned()]
    game.load(deck_for(animals), animals, [H, H, [1, 0, 0, 0, 0, 0]], 0)
    for decision in range(8):
        assert not game.over
        terms = game.step(game.legal()[0])
        assert game.decisions == decision + 1
    cut = at_limit == "CUT"
    assert (game.terminated, game.truncated, game.end) == (not cut, cut, "limit")
    assert game.phase == ("BID" if cut else "DONE")
    assert game.legal() == []
    assert terms["rank"] == ([0, 0, 0] if cut else [0, 1, -1])
    # Control returns to everybody, whatever becomes of the game.
    assert terms["seed_broke"] == [0, 0, 1]
    assert terms["potential"] == pytest.approx([-0.0325, -0.04, 0])
    for observer in range(3):
        shown = blocks(game, observer)
        for block in ("PHASE", "AUC", "AUCS"):
            assert any(shown[block]) == cut


def test_skip_forced_adds_the_rewards_up() -> None:
    for seed in range(4):
        slow = Kuhhandel({"pass_mode": "HARD"}, Philox(seed, 0, 0, CHANCE))
        fast = Kuhhandel({"pass_mode": "HARD", "skip_forced": 1}, Philox(seed, 0, 0, CHANCE))
        slow.reset()
        fast.reset()
        slow.step(0)  # the first turn has one action
        rng = random.Random(seed)
        while not fast.over:
            action = rng.choice(fast.legal())
            terms, summed = fast.step(action), slow.step(action)
            while not slow.over and len(slow.legal()) == 1:
                more = slow.step(slow.legal()[0])
                summed = {
                    n: [a + b for a, b in zip(summed[n], more[n], strict=True)] for n in summed
                }
            assert slow.state() == fast.state()
            for name, values in terms.items():
                assert values == pytest.approx(summed[name])


# Rewards


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


# Observation


def test_spot_checks_of_section_13() -> None:
    game = Kuhhandel()
    game.reset()
    seen = game.observe(game.seat)
    assert len(seen) == 163
    assert seen[:8] == [1, 0, 0, 0, 0, 0, 0, 0]
    assert seen[8:11] == [1, 1, 1]
    assert seen[11:15] == [0] * 4
    assert seen[15:25] == [1] * 10
    assert seen[64:71] == [0.2, 0.2, 0.1, 0, 0, 0, 0.09]
    assert seen[71:81] == [0.35, 0.2, 0.2, 0.1, 0, 0, 0, 0, 1, 0.09]
    assert not any(seen[91:])


@pytest.mark.parametrize("players", [3, 4, 5])
def test_offsets_of_the_blocks(players: int) -> None:
    n = players
    game = table(num_players=n)
    offsets = {
        "PHASE": (0, 8),
        "ACT": (8, 1),
        "DECK": (9, 1),
        "DONK": (10, 5),
        "UNSEEN": (15, 10),
        "ANIM": (25, 10 * n),
        "SUMM": (25 + 10 * n, 3 * n),
        "OWN": (25 + 13 * n, 6),
        "TOTAL": (31 + 13 * n, 1),
        "OPP": (32 + 13 * n, 10 * (n - 1)),
        "AUC": (22 + 23 * n, 15),
        "AUCS": (37 + 23 * n, 5 * n),
        "TRD": (37 + 28 * n, 16),
        "TRDS": (53 + 28 * n, 2 * n),
        "COMP": (53 + 30 * n, 20),
    }
    at = 0
    for name, block in blocks(game, 0).items():
        assert (at, len(block)) == offsets[name]
        at += len(block)
    assert at == game.observation_size() == 73 + 30 * n


def test_auction_blocks() -> None:
    game = auction()
    play(game, (1, num(1)))
    shown = blocks(game, 1)
    assert shown["AUC"] == [*[0.0] * 9, 1, 1, 0, 0, 0.01, 1 / 47]
    assert blocks(game, 0)["AUC"][14] == 0
    play(game, (1, num(2)), (2, PASS))
    shown = blocks(game, 2)
    assert shown["AUC"][10:] == [1, 0.12, 1, 0.13, 0]
    assert shown["AUCS"] == [0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0.12]
    play(game, (0, SELL))
    assert blocks(game, 0)["AUCS"] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]


def test_trade_blocks() -> None:
    game, action = start_trade([2, 2, 0], [R, R, R])
    play(game, (0, action), (0, num(0)), (0, num(1)))
    # Below the choice of the hundred: the pointer has moved on.
    assert blocks(game, 0)["COMP"] == [
        *[0, 0, 0, 1, 0, 0],
        *[0, 0, 0, 0, 0.2, 0],
        *[0.2, 0],
        *[0] * 6,
    ]
    for other in (1, 2):
        assert not any(blocks(game, other)["COMP"])
        assert blocks(game, other)["TRD"] == [*[0.0] * 8, 1, 0, 0.8, 0, 1, 0, 0, 0]
    play(game, (0, num(0)), (0, num(0)), (0, num(0)), (0, num(1)))
    assert blocks(game, 0)["COMP"] == [*[0] * 14, 0.1, 0, 0, 0, 0.2, 0]
    assert blocks(game, 1)["TRD"][13] == 0.1
    assert blocks(game, 1)["TRDS"] == [0, 0, 1, 1, 0, 0]
    game.step(COUNTER)
    lay(game, pile(200))
    for observer, tied in enumerate((0.2, 0.2, 0)):
        assert blocks(game, observer)["TRD"][13:] == [0, 1, tied]


def test_the_price_is_public() -> None:
    game = auction()
    play(game, *A02, (0, SELL))
    assert blocks(game, 1)["COMP"] == [*[0] * 13, 0.02, *[0] * 6]
    assert blocks(game, 2)["COMP"] == [0, 0, 1, *[0] * 10, 0.02, *[0] * 6]


def test_history_is_relative_and_keeps_64_events() -> None:
    game = auction(history=1)
    play(game, *A02, (0, SELL), (2, num(0)))
    rows = [blocks(game, 1)["HISTORY"][8 * i : 8 * i + 8] for i in range(64)]
    assert rows[:5] == [
        [4, 1, 2, 0.2, 2, 0, 0, 0],
        [3, 0, -1, 0, 0, 0, 0, 0],
        [2, 1, -1, 0.2, 0, 0, 0, 0],
        [2, 0, -1, 0.1, 0, 0, 0, 0],
        [1, 2, -1, HORSE / 10, 0, 0, 0, 0],
    ]
    assert not any(value for row in rows[5:] for value in row)
    game, action = start_trade([1, 1, 2], [R, R, R], history=1)
    play(game, (0, action))
    lay(game, pile(100))
    game.step(COUNTER)
    lay(game, pile(100))
    lay(game, pile(50, 0))
    lay(game, pile(200))
    rows = [blocks(game, 2)["HISTORY"][8 * i : 8 * i + 8] for i in range(3)]
    assert rows[0] == [8, 1, 2, COW / 10, 1, 2, 1, 2]
    assert rows[1] == [9, 1, 2, 0.1, 1, 0, 0, 0]
    game = auction(top=DONKEY, history=1)
    assert blocks(game, 0)["HISTORY"][:8] == [10, -1, -1, 0.1, 0, 0, 0, 0]
    game = Kuhhandel({"history": 1}, Philox(2, 0, 0, CHANCE))
    game.reset()
    rng = random.Random(1)
    for _ in range(300):
        game.step(rng.choice(game.legal()))
    assert len(game.events) == 64
    assert len(game.observe(0)) == 163 + 512


# Bots


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


# Section 19


def random_config(rng: random.Random) -> dict[str, Any]:
    config = {key: rng.choice(list(values)) for key, values in ALLOWED.items()}
    config["auto_forced"] = int(rng.random() < 0.7)
    config["max_decisions"] = rng.choice([4000, 4000, 4000, rng.randint(2, 400)])
    return config


def random_game(rng: random.Random, number: int) -> tuple[Kuhhandel, list[str], Philox]:
    game = Kuhhandel(random_config(rng), Philox(4, number, 0, CHANCE))
    game.reset()
    players = [rng.choice(bots.NAMES) for _ in range(game.num_players)]
    return game, players, Philox(4, number, 0, BOTS)


def check_cards(game: Kuhhandel) -> None:
    n = game.num_players
    expected = [count * n for count in START_HAND]
    for denomination in DONKEY_PAYOUTS[: game.donkeys]:
        expected[denomination] += n
    held = [sum(hand[d] for hand in game.money) for d in range(6)]
    assert held == expected
    payouts = sum(MONEY_VALUES[d] for d in DONKEY_PAYOUTS[: game.donkeys])
    assert game.circulation() == n * (90 + payouts) <= 940 * n
    for kind in range(KINDS):
        under = game.auction is not None and game.now.animal == kind
        assert sum(own[kind] for own in game.animals) + game.deck.count(kind) + under == 4
    assert min(min(hand) for hand in game.money) >= 0
    assert min(min(own) for own in game.animals) >= 0


def check_knowledge(game: Kuhhandel) -> None:
    for p in game.players:
        assert game.known[p][p] == game.money[p]
        for q in game.players:
            for d in range(6):
                assert 0 <= game.known[p][q][d] <= game.money[q][d]


def check_move(before: Kuhhandel, game: Kuhhandel) -> None:
    """What one decision without skipping may change."""
    for player in game.players:
        for kind in range(KINDS):
            if before.animals[player][kind] == 4:
                assert game.animals[player][kind] == 4
    if before.phase in TRADE_PHASES:
        parties = {before.deal.challenger, before.deal.target}
        for player in set(game.players) - parties:
            assert game.money[player] == before.money[player]
            assert game.animals[player] == before.animals[player]
        changed = [
            (player, kind, game.animals[player][kind] - before.animals[player][kind])
            for player in game.players
            for kind in range(KINDS)
            if game.animals[player][kind] != before.animals[player][kind]
        ]
        if changed:
            count = stake(
                *(before.animals[player][before.deal.animal] for player in sorted(parties))
            )
            assert sorted(change for _, _, change in changed) == [-count, count]
            assert {kind for _, kind, _ in changed} == {before.deal.animal}
    if before.phase in ("DECIDE", "PAY") and game.events[-1][0] in (4, 5) and game.phase == "TURN":
        payer = game.events[-1][1]
        paid = [b - a for a, b in zip(game.money[payer], before.money[payer], strict=True)]
        assert is_minimal_payment(paid, before.now.high)
    raised = before.phase == "BID" and game.events[-1][0] == 2 and game.auction is not None
    if raised and game.now.high_bidder == before.seat:
        assert game.now.high > before.now.high


def test_random_games_keep_the_invariants() -> None:
    rng = random.Random(2024)
    for number in range(40):
        game, players, stream = random_game(rng, number)
        skips = game.config["skip_forced"]
        turns = 0
        while not game.over:
            check_cards(game)
            check_knowledge(game)
            legal = game.legal()
            assert legal == sorted(set(legal))
            assert legal
            assert legal[0] >= 0
            assert legal[-1] < ACTIONS
            if rng.random() < 0.05:
                state = copy.deepcopy(game.state())
                illegal = set(range(-1, ACTIONS + 1)) - set(legal)
                with pytest.raises(ValueError, match="illegal"):
                    game.step(rng.choice(sorted(illegal)))
                assert game.state() == state
            before = copy.deepcopy(game) if not skips and rng.random() < 0.15 else None
            turns += game.phase == "TURN"
            action = game.bot(players[game.seat], stream)
            assert action in legal
            terms = game.step(action)
            assert list(terms) == list(rewards.TERMS)
            for name in ("rank", "win", "score_zs"):
                assert abs(sum(terms[name])) < 1e-9
                assert game.terminated or not any(terms[name])
            if before is not None:
                check_move(before, game)
            if game.auction is not None:
                assert sum(game.now.exposed) <= game.num_players - 1
                assert max(game.now.last_bid) == game.now.high
        check_cards(game)
        check_knowledge(game)
        scores = game.scores()
        assert all(0 <= points <= 38500 for points in scores)
        if game.end == "quartets":
            assert not game.deck
            complete = [k for own in game.animals for k in range(KINDS) if own[k] == 4]
            assert sorted(complete) == list(range(KINDS))
            assert sum(QUARTET_VALUES[k] for k in complete) == 3850
            assert skips or turns >= 40
        else:
            assert game.end == "limit"
            assert game.decisions == game.config["max_decisions"]


def test_default_games_end_by_quartets() -> None:
    for players, typical in ((3, 660), (4, 1145), (5, 1459)):
        decisions = []
        for number in range(4):
            game = Kuhhandel({"num_players": players}, Philox(8, number, 0, CHANCE))
            game.reset()
            rng = random.Random(number)
            while not game.over:
                game.step(rng.choice(game.legal()))
            assert game.end == "quartets"
            decisions.append(game.decisions)
        assert 0.75 * typical < sum(decisions) / 4 < 1.3 * typical


def rotated(items: Sequence[Any], shift: int) -> list[Any]:
    return [items[(seat - shift) % len(items)] for seat in range(len(items))]


def test_rotating_the_seats_rotates_the_game() -> None:
    rng = random.Random(99)
    for number in range(8):
        config = {**random_config(rng), "history": 1}
        base, turned = Kuhhandel(config, Philox(6, number, 0, CHANCE)), Kuhhandel(config)
        base.reset()
        n, shift = base.num_players, rng.randrange(1, base.num_players)
        start = Kuhhandel({**config, "skip_forced": 0}, Philox(6, number, 0, CHANCE))
        start.reset()
        turned.load(
            start.deck,
            rotated(start.animals, shift),
            rotated(start.money, shift),
            (start.turn + shift) % n,
        )
        while not base.over:
            assert turned.seat == (base.seat + shift) % n
            assert base.legal() == turned.legal()
            if rng.random() < 0.2:
                for player in range(n):
                    assert base.observe(player) == turned.observe((player + shift) % n)
            action = rng.choice(base.legal())
            terms, turned_terms = base.step(action), turned.step(action)
            for name, values in terms.items():
                assert turned_terms[name] == rotated(values, shift)
        assert turned.over


def some_cards(hand: Sequence[int], count: int, rng: random.Random) -> list[int]:
    cards = [d for d in range(6) for _ in range(hand[d])]
    chosen = rng.sample(cards, count)
    return [chosen.count(d) for d in range(6)]


def scrambled(game: Kuhhandel, observer: int, rng: random.Random) -> Kuhhandel:
    """A copy in which everything that the observer must not see is different (section 13)."""
    other = copy.deepcopy(game)
    others = [p for p in game.players if p != observer]
    unknown = {
        p: [m - k for m, k in zip(game.money[p], game.known[observer][p], strict=True)]
        for p in others
    }
    loose = [d for p in others for d in range(6) for _ in range(unknown[p][d])]
    rng.shuffle(loose)
    for p in others:
        size = sum(unknown[p])
        mine, loose = loose[:size], loose[size:]
        known = game.known[observer][p]
        other.money[p] = [known[d] + mine.count(d) for d in range(6)]
        other.known[p] = [[0] * 6 for _ in game.players]
    rng.shuffle(other.deck)
    if other.trade is not None and observer != other.trade.challenger:
        hand = other.money[other.trade.challenger]
        other.trade.offer = some_cards(hand, sum(other.trade.offer), rng)
        if observer != other.trade.target:
            other.trade.tied = 10 * rng.randrange(50)
    if other.composing is not None and game.seat != observer:
        hand = other.money[game.seat]
        other.composing.selected = some_cards(hand, rng.randint(0, sum(hand)), rng)
        other.composing.denomination = rng.randrange(6)
    if other.auction is not None and game.seat != observer:
        other.auction.hundreds = rng.randrange(48)
    return other


def test_observations_leak_nothing() -> None:
    rng = random.Random(31)
    for number in range(20):
        game, players, stream = random_game(rng, 1000 + number)
        while not game.over:
            if rng.random() < 0.1:
                observer = rng.randrange(game.num_players)
                seen = game.observe(observer)
                assert len(seen) == game.observation_size()
                assert all(isinstance(x, float) and math.isfinite(x) for x in seen)
                assert scrambled(game, observer, rng).observe(observer) == seen
            game.step(game.bot(players[game.seat], stream))


def test_same_seed_same_game_and_copies_go_on_alike() -> None:
    rng = random.Random(13)
    for number in range(6):
        config = random_config(rng)
        games = [Kuhhandel(config, Philox(1, number, 5, CHANCE)) for _ in range(2)]
        for game in games:
            game.reset()
        games.append(copy.deepcopy(games[0]))
        while not games[0].over:
            action = rng.choice(games[0].legal())
            terms = [game.step(action) for game in games]
            assert terms[0] == terms[1] == terms[2]
            states = [game.state() for game in games]
            assert states[0] == states[1] == states[2]
            if rng.random() < 0.02:
                games[2] = copy.deepcopy(games[1])
