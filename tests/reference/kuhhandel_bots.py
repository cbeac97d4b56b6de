"""Scripted opponents of section 17, in exact arithmetic so that no rounding decides a choice.

A bot has no memory: where one plan takes several actions (hundreds and tens of a bid, the counts
of a pile) it plans anew at every action and keeps to what is already chosen. Hence the draws:

random   below(number of legal actions).
thrifty  TURN: nothing to auction, else below(number of trades). Otherwise one uniform, also with
         one legal action. In TENS the bids of the chosen hundred keep their weights of BID.
dealer   BID: uniform for the cap, then, if cap >= high + 10, below(number of tens) for the target.
         TENS: the same with the bids of the chosen hundred; if that fails, the smallest payable
         one among them. OFFER, COUNTER: one uniform at every count. Nothing in other phases.

A uniform is one word of the stream, its upper 24 bits divided by 2**24. Equally good trades: the
lowest action.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from reference.kuhhandel_rules import (
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
    minimal_payments,
    payment_order,
    piles,
    quartet_sum,
    quartets,
    stake,
    total,
)

if TYPE_CHECKING:
    from reference.kuhhandel import Kuhhandel, Rng

NAMES = ("random", "thrifty", "dealer")

AUCTION_FRACTION = Fraction("0.60")
RESERVE = Fraction("0.30")


def choose(game: Kuhhandel, name: str, rng: Rng) -> int:
    if name not in NAMES:
        raise ValueError(f"unknown bot {name!r}")
    if game.terminated:
        raise ValueError("the game is over")
    if name == "random":
        legal = game.legal()
        return legal[rng.below(len(legal))]
    return thrifty(game, rng) if name == "thrifty" else dealer(game, rng)


def uniform(rng: Rng) -> Fraction:
    return Fraction(rng.u32() >> 8, 1 << 24)


def draw_weighted(weights: Sequence[Fraction], rng: Rng) -> int:
    """The first index at which the summed weights exceed the drawn share of the whole."""
    target = uniform(rng) * sum(weights)
    reached = Fraction(0)
    for index, weight in enumerate(weights):
        reached += weight
        if reached > target:
            return index
    raise AssertionError("the target lies below the sum")


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
        bids = list(range(game.now.high + 10, total(game.money[game.seat]) + 1, 10))
        chosen = draw_weighted([Fraction(1, i + 1) for i in range(len(bids) + 1)], rng)
        return PASS if chosen == 0 else bid_action(game, bids[chosen - 1])
    if game.phase == "TENS":
        bids = thrifty_bids_of_the_hundred(game)
        if bids:
            weights = [Fraction(1, (bid - game.now.high) // 10 + 1) for bid in bids]
            return tens_action(bids[draw_weighted(weights, rng)])
    return legal[draw_weighted([Fraction(1, i + 1) for i in range(len(legal))], rng)]


def thrifty_bids_of_the_hundred(game: Kuhhandel) -> list[int]:
    """Empty only if somebody else chose the hundreds."""
    own = total(game.money[game.seat])
    return [b for b in game.jump_bids() if b // 100 == game.now.hundreds and b <= own]


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
    return dealer_offer(game, rng)


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


def payable_sums(game: Kuhhandel) -> set[int]:
    return {total(pile) for pile in piles([0, *game.money[game.seat][1:]])}


def dealer_cap(game: Kuhhandel, rng: Rng) -> int:
    factor = Fraction("0.9") + Fraction("0.2") * uniform(rng)
    cap = min(AUCTION_FRACTION * auction_value(game), spendable(game)) * factor
    return math.floor(cap / 10) * 10


def dealer_target(game: Kuhhandel, low: int, high: int, rng: Rng) -> int | None:
    """A bid in low..high that can be paid exactly, if one is found."""
    if low > high:
        return None
    target = low + 10 * rng.below((high - low) // 10 + 1)
    bid = min((s for s in payable_sums(game) if s >= target), default=None)
    return None if bid is None or bid > high else bid


def dealer_bid(game: Kuhhandel, rng: Rng) -> int:
    cap = dealer_cap(game, rng)
    bid = dealer_target(game, game.now.high + 10, cap, rng)
    return PASS if bid is None else bid_action(game, bid)


def dealer_tens(game: Kuhhandel, rng: Rng) -> int:
    cap = dealer_cap(game, rng)
    bids = [bid for bid in game.jump_bids() if bid // 100 == game.now.hundreds]
    bid = dealer_target(game, bids[0], min(cap, bids[-1]), rng)
    if bid is None:
        bid = min((b for b in bids if b in payable_sums(game)), default=bids[0])
    return tens_action(bid)


def dealer_decide(game: Kuhhandel) -> int:
    hand, price = game.money[game.seat], game.now.high
    if total(hand) < price:
        return SELL
    most = min(refusal_fraction(game) * auction_value(game), spendable(game))
    return BUY if total(auto_payment(hand, price)) <= most else SELL


def already_chosen(game: Kuhhandel, pile: Sequence[int]) -> bool:
    """Whether a pile agrees with the counts named so far."""
    chosen, at = game.pile.selected, game.pile.denomination
    return list(pile[at + 1 :]) == chosen[at + 1 :]


def dealer_payment(game: Kuhhandel) -> int:
    payments = minimal_payments(game.money[game.seat], game.pile.price)
    best = min((pile for pile in payments if already_chosen(game, pile)), key=payment_order)
    return FIRST_NUMBER + best[game.pile.denomination]


def dealer_offer(game: Kuhhandel, rng: Rng) -> int:
    deal, hand = game.deal, game.money[game.seat]
    other = deal.target if game.seat == deal.challenger else deal.challenger
    value = stake_value(game, game.seat, other, deal.animal, deal.stake)
    factor = Fraction(1, 2) + uniform(rng) / 2
    limit = math.floor(trade_fraction(game) * value * factor)
    nothing_more = [0] * 6
    at = game.pile.denomination
    nothing_more[at + 1 :] = game.pile.selected[at + 1 :]
    fitting = [
        pile
        for pile in piles([0, *hand[1:]])
        if already_chosen(game, pile) and (total(pile) <= limit or pile == nothing_more)
    ]
    largest = max(total(pile) for pile in fitting)
    best = min((pile for pile in fitting if total(pile) == largest), key=payment_order)
    if largest == 0:
        lowest = min(d for d in range(6) if hand[d])
        best[lowest] = 1
    return FIRST_NUMBER + best[at]
