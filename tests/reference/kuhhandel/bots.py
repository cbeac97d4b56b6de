"""Scripted opponents of section 17, in exact arithmetic so that no rounding decides a choice.

A bot has no memory: where one plan takes several actions (hundreds and tens of a bid, the counts
of a pile) it plans anew at every action and draws until the plan agrees with what is already
named. Every plan is then as likely as if it had been drawn once. After 10,000 draws in vain, as
when somebody else began, it takes the lowest legal action. Hence the draws:

random   below(number of legal actions).
thrifty  TURN: nothing to auction, else below(number of trades). Otherwise one word of the stream
         as a share of 2**32, also with one legal action. In TENS the bids of the chosen hundred
         keep their weights of BID; if it would make none of them, the lowest, without a draw.
dealer   BID: a share for the cap, then, if cap >= high + 10, below(number of tens) for the target.
         TENS: the same until the hundred agrees. OFFER, COUNTER: a share per drawn pile. A share
         is the upper 24 bits of a word, divided by 2**24. Nothing in other phases.

Equally good trades: the lowest action.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

from reference.kuhhandel.rules import (
    AUCTION,
    BUY,
    COUNTER,
    FIRST_NUMBER,
    FIRST_TRADE,
    MIN_RAISE,
    PASS,
    QUARTET_VALUES,
    SELL,
    auto_payment,
    largest_pile,
    quartet_sum,
    quartets,
    stake,
    total,
)

if TYPE_CHECKING:
    from reference.kuhhandel.game import Kuhhandel
    from reference.philox import Rng

NAMES = ("random", "thrifty", "dealer")

AUCTION_FRACTION = Fraction("0.60")
RESERVE = Fraction("0.30")
TRIES = 10_000

# Sums of 1, 1/2, 1/3, .. in whole parts; a list of bids has at most 471 entries.
PARTS = math.lcm(*range(1, 472))
HARMONIC = [0, *accumulate(PARTS // (i + 1) for i in range(471))]


def choose(game: Kuhhandel, name: str, rng: Rng) -> int:
    if name not in NAMES:
        raise ValueError(f"unknown bot {name!r}")
    if game.over:
        raise ValueError("the game is over")
    if name == "random":
        legal = game.legal()
        return legal[rng.below(len(legal))]
    return thrifty(game, rng) if name == "thrifty" else dealer(game, rng)


def draw_harmonic(first: int, last: int, rng: Rng) -> int:
    """An index in first..last, drawn with weight 1 / (index + 1)."""
    start, end = HARMONIC[first], HARMONIC[last + 1]
    target = (start << 32) + rng.u32() * (end - start)
    return next(i for i in range(first, last + 1) if HARMONIC[i + 1] << 32 > target)


def bid_action(game: Kuhhandel, bid: int) -> int:
    return MIN_RAISE if bid == game.now.high + 10 else FIRST_NUMBER + bid // 100


def tens_action(bid: int) -> int:
    return FIRST_NUMBER + bid % 100 // 10


# THRIFTY, the seed's weighted random agent.


def thrifty(game: Kuhhandel, rng: Rng) -> int:
    legal = game.legal()
    if game.phase == "TURN":
        return AUCTION if AUCTION in legal else legal[rng.below(len(legal))]
    if game.phase == "BID":
        return thrifty_bid(game, rng)
    if game.phase == "TENS":
        return thrifty_tens(game, rng)
    return legal[draw_harmonic(0, len(legal) - 1, rng)]


def thrifty_bid(game: Kuhhandel, rng: Rng) -> int:
    """Index 0 of the list is to pass, index i to raise by i tens."""
    high, own = game.now.high, total(game.money[game.seat])
    raised = draw_harmonic(0, max(0, (own - high) // 10), rng)
    return PASS if raised == 0 else bid_action(game, high + 10 * raised)


def thrifty_tens(game: Kuhhandel, rng: Rng) -> int:
    high, own = game.now.high, total(game.money[game.seat])
    bids = [b for b in game.jump_bids() if b // 100 == game.now.hundreds and b <= own]
    if not bids:  # somebody else chose the hundreds
        return game.legal()[0]
    raised = draw_harmonic((bids[0] - high) // 10, (bids[-1] - high) // 10, rng)
    return tens_action(high + 10 * raised)


# DEALER.


def dealer(game: Kuhhandel, rng: Rng) -> int:
    if game.phase == "TURN":
        return dealer_turn(game)
    if game.phase == "BID":
        return dealer_bid(game, rng)
    if game.phase == "TENS":
        return dealer_tens(game, rng)
    if game.phase == "DECIDE":
        return dealer_decide(game)
    if game.phase == "RESPOND":
        return COUNTER
    if game.phase == "PAY":
        return dealer_payment(game)
    return dealer_pile(game, rng)


def denial_fraction(game: Kuhhandel) -> Fraction:
    return Fraction("0.35") if game.num_players == 3 else Fraction("0.65")


def refusal_fraction(game: Kuhhandel) -> Fraction:
    return Fraction("0.25") if game.num_players == 3 else Fraction("0.35")


def trade_fraction(game: Kuhhandel) -> Fraction:
    return Fraction("0.75") if game.num_players == 3 else Fraction("1.00")


def claim(game: Kuhhandel, player: int, kind: int, count: int) -> Fraction:
    """What `count` more cards of a kind are worth to a player."""
    animals = game.animals[player]
    missing = 4 - animals[kind]
    if missing == 0:
        return Fraction(0)
    gain = quartet_sum(animals) + (len(quartets(animals)) + 1) * QUARTET_VALUES[kind]
    return Fraction(gain * min(count, missing), missing)


def auction_value(game: Kuhhandel) -> Fraction:
    kind = game.now.animal
    others = [claim(game, p, kind, 1) for p in game.players if p != game.seat]
    return claim(game, game.seat, kind, 1) + denial_fraction(game) * max(others)


def spendable(game: Kuhhandel) -> Fraction:
    return (1 - RESERVE) * total(game.money[game.seat])


def stake_value(game: Kuhhandel, own: int, other: int, kind: int, count: int) -> Fraction:
    return claim(game, own, kind, count) + denial_fraction(game) * claim(game, other, kind, count)


def dealer_turn(game: Kuhhandel) -> int:
    trades = game.trades(game.seat)
    if not trades:
        return AUCTION
    # max() keeps the first of equals, which is the lowest action.
    best = max(trades, key=lambda action: judge_trade(game, action)[:2])
    completes = judge_trade(game, best)[2]
    return best if not game.deck or completes else AUCTION


def judge_trade(game: Kuhhandel, action: int) -> tuple[int, Fraction, bool]:
    """Priority, stake value, and whether winning completes an own quartet."""
    relative, kind = divmod(action - FIRST_TRADE, 10)
    target = (game.seat + relative + 1) % game.num_players
    own, other = game.animals[game.seat][kind], game.animals[target][kind]
    count = stake(own, other)
    value = stake_value(game, game.seat, target, kind, count)
    completes = own + count == 4
    if game.deck:
        priority = 0
    elif completes:
        priority = 4
    elif own == other:
        priority = 3
    elif other + count == 4:
        priority = 2
    else:
        priority = 1
    return priority, value, completes


UNIT = 1 << 24


def share(rng: Rng) -> int:
    """Uniform in 0..1, in units of 2^-24."""
    return rng.u32() >> 8


def draw_bid(game: Kuhhandel, budget: Fraction, rng: Rng) -> int | None:
    """A bid that can be paid exactly; None to pass."""
    factor = 9 * UNIT + 2 * share(rng)  # / 10 units; whole numbers, since fractions are slow
    cap = budget.numerator * factor // (100 * UNIT * budget.denominator)  # in tens, as is the next
    lowest = game.now.high // 10 + 1
    if cap < lowest:
        return None
    target = 10 * (lowest + rng.below(cap - lowest + 1))
    bid = total(auto_payment(game.money[game.seat], target))
    return bid if bid <= 10 * cap else None


def bid_budget(game: Kuhhandel) -> Fraction:
    return min(AUCTION_FRACTION * auction_value(game), spendable(game))


def dealer_bid(game: Kuhhandel, rng: Rng) -> int:
    bid = draw_bid(game, bid_budget(game), rng)
    return PASS if bid is None else bid_action(game, bid)


def dealer_tens(game: Kuhhandel, rng: Rng) -> int:
    budget, jumps = bid_budget(game), game.jump_bids()
    for _ in range(TRIES):
        bid = draw_bid(game, budget, rng)
        if bid is not None and bid in jumps and bid // 100 == game.now.hundreds:
            return tens_action(bid)
    return game.legal()[0]


def dealer_decide(game: Kuhhandel) -> int:
    hand, price = game.money[game.seat], game.now.high
    if total(hand) < price:
        return SELL
    most = min(refusal_fraction(game) * auction_value(game), spendable(game))
    return BUY if total(auto_payment(hand, price)) <= most else SELL


def dealer_payment(game: Kuhhandel) -> int:
    """The AUTO set; if something else was named already, the best that is left."""
    at = game.pile.denomination
    left = [*game.money[game.seat][: at + 1], *[0] * (5 - at)]
    rest = auto_payment(left, game.pile.price - total(game.pile.selected))
    return FIRST_NUMBER + rest[at]


def draw_pile(hand: Sequence[int], budget: Fraction, rng: Rng) -> list[int]:
    factor = UNIT + share(rng)  # / 2 units
    pile = largest_pile(hand, budget.numerator * factor // (2 * UNIT * budget.denominator))
    if total(pile) == 0:
        pile[min(d for d in range(6) if hand[d])] = 1
    return pile


def dealer_pile(game: Kuhhandel, rng: Rng) -> int:
    deal, at = game.deal, game.pile.denomination
    other = deal.target if game.seat == deal.challenger else deal.challenger
    value = stake_value(game, game.seat, other, deal.animal, deal.stake)
    budget = trade_fraction(game) * value
    for _ in range(TRIES):
        pile = draw_pile(game.money[game.seat], budget, rng)
        if pile[at + 1 :] == game.pile.selected[at + 1 :]:
            return FIRST_NUMBER + pile[at]
    return game.legal()[0]
