"""Rules of Kuhhandel as pure functions: animals, money, payments, stakes, scores.

A hand or pile of money is a list of six counts, by denomination index 0..5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product

ANIMALS = (
    "rooster",
    "goose",
    "cat",
    "dog",
    "sheep",
    "goat",
    "donkey",
    "pig",
    "cow",
    "horse",
)
QUARTET_VALUES = (10, 40, 90, 160, 250, 350, 500, 650, 800, 1000)
KINDS = 10
DONKEY = ANIMALS.index("donkey")

MONEY_VALUES = (0, 10, 50, 100, 200, 500)
START_HAND = (2, 4, 1, 0, 0, 0)
# Denomination that everybody receives for the first to fourth donkey (section 6).
DONKEY_PAYOUTS = (2, 3, 4, 5)

# Actions (section 12) and phases (section 11.2).
ACTIONS = 95
AUCTION, FIRST_TRADE = 0, 1
PASS, MIN_RAISE, SELL, BUY, ACCEPT, COUNTER, FIRST_NUMBER = range(41, 48)
PHASES = ("TURN", "BID", "TENS", "DECIDE", "PAY", "OFFER", "RESPOND", "COUNTER", "DONE")
AUCTION_PHASES = ("BID", "TENS", "DECIDE", "PAY")
TRADE_PHASES = ("OFFER", "RESPOND", "COUNTER")
COMPOSING_PHASES = ("PAY", "OFFER", "COUNTER")
NO_POLICY = -1

Money = Sequence[int]


def total(money: Money) -> int:
    return 10 * money[1] + 50 * money[2] + 100 * money[3] + 200 * money[4] + 500 * money[5]


def quartets(animals: Sequence[int]) -> list[int]:
    """Kinds of which all four cards are owned."""
    return [kind for kind, count in enumerate(animals) if count == 4]


def quartet_sum(animals: Sequence[int]) -> int:
    return sum(QUARTET_VALUES[kind] for kind in quartets(animals))


def score(animals: Sequence[int]) -> int:
    """Section 8."""
    complete = quartets(animals)
    return sum(QUARTET_VALUES[kind] for kind in complete) * len(complete)


def stake(own: int, other: int) -> int:
    """Animals at stake in a trade (section 7)."""
    return 2 if own == 2 and other == 2 else 1


def piles(hand: Money) -> Iterator[list[int]]:
    """Every pile that can be taken out of a hand."""
    for counts in product(*(range(held + 1) for held in hand)):
        yield list(counts)


def is_minimal_payment(pile: Money, price: int) -> bool:
    """Enough, and too little without any one of its cards; 0-cards are never used."""
    used = [MONEY_VALUES[d] for d in range(6) if pile[d]]
    return total(pile) >= price and all(total(pile) - value < price for value in used)


def minimal_payments(hand: Money, price: int) -> list[list[int]]:
    """Section 5; `price` is positive."""
    return [pile for pile in piles([0, *hand[1:]]) if is_minimal_payment(pile, price)]


def payment_order(pile: Money) -> tuple[int, ...]:
    """Smaller is preferred: less money, fewer cards, more of the larger ones (K5)."""
    return (total(pile), sum(pile), *(-pile[d] for d in reversed(range(6))))


@lru_cache(maxsize=4096)
def preferred_piles(hand: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """Every sum that a hand can pay, with the pile that is preferred for it (K5).

    One denomination joins after the other, the larger later: of two piles of one sum, the better
    stays the better whatever larger cards both are given.
    """
    best = {0: (0,) * 6}
    for d in range(1, 6):
        larger = [
            (*pile[:d], count, *pile[d + 1 :])
            for pile in best.values()
            for count in range(hand[d] + 1)
        ]
        best = {total(pile): pile for pile in sorted(larger, key=payment_order, reverse=True)}
    return best


def auto_payment(hand: Money, price: int) -> list[int]:
    """The minimal payment that K5 prefers; the hand is worth the price."""
    payable = preferred_piles(tuple(hand))
    return list(payable[min(sum_ for sum_ in payable if sum_ >= price)])


def largest_pile(hand: Money, limit: int) -> list[int]:
    """The largest sum up to a limit, as K5 would pay it; 0-cards are never used."""
    payable = preferred_piles(tuple(hand))
    return list(payable[max(sum_ for sum_ in payable if sum_ <= limit)])


def payment_counts(hand: Money, price: int, selected: Money, denomination: int) -> list[int]:
    """Legal counts of a denomination while a payment is composed (section 11.2)."""
    missing = price - total(selected)
    value = MONEY_VALUES[denomination]
    lower = sum(hand[d] * MONEY_VALUES[d] for d in range(1, denomination))
    most = -(-missing // value)
    return [
        count
        for count in range(hand[denomination] + 1)
        if count <= most and count * value + lower >= missing
    ]


def offer_counts(
    hand: Money, selected: Money, denomination: int, may_be_empty: bool = False
) -> list[int]:
    """Legal counts of a denomination while an offer or counter-offer is composed."""
    last_chance = not any(selected) and not any(hand[:denomination])
    least = 1 if last_chance and not may_be_empty else 0
    return list(range(least, hand[denomination] + 1))
