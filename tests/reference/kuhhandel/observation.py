"""Observation vector of section 13 by block; every entry is an integer divided by a constant.

The minimum raise is high + 10 in every phase of an auction, whoever looks and whatever the limit.
At the end, by limit too, no auction or trade is shown; a game that is cut is shown as it stands.
The flags of excluded players mark who showed his money in this auction, under CAP too, where he
may still bid. With `history` the event ring follows as 64 rows of 8 numbers, latest first, empty
rows last and all zero; seats that an event does not name are -1, and number a is divided by 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reference.kuhhandel.rules import (
    AUCTION_PHASES,
    COMPOSING_PHASES,
    KINDS,
    NO_POLICY,
    PHASES,
    QUARTET_VALUES,
    TRADE_PHASES,
    quartet_sum,
    quartets,
    score,
    total,
)

if TYPE_CHECKING:
    from reference.kuhhandel.game import Kuhhandel

MONEY_NORMS = (10, 20, 10, 5, 5, 5)
EVENTS, EVENT_SIZE = 64, 8
# Columns that name seats, where they are not (1, 2): shown money has a count in the second, and a
# trade names its winner.
SEATS_OF_EVENTS = {7: (1,), 8: (1, 2, 7)}


def observation_size(game: Kuhhandel) -> int:
    ring = EVENTS * EVENT_SIZE if game.config["history"] else 0
    return 73 + 30 * game.num_players + ring


def observe(game: Kuhhandel, observer: int) -> list[float]:
    return [value for block in blocks(game, observer).values() for value in block]


def blocks(game: Kuhhandel, observer: int) -> dict[str, list[float]]:
    """The blocks by name, in the order of the vector."""
    if observer not in game.players:
        raise ValueError(f"no player sits on seat {observer}")
    seats = [(observer + offset) % game.num_players for offset in game.players]
    shown: dict[str, list[float]] = {
        "PHASE": one_hot(PHASES.index(game.phase), 8),
        "ACT": [float(game.seat == observer)],
        "DECK": [len(game.deck) / 40],
        "DONK": one_hot(game.donkeys, 5),
        "UNSEEN": [game.deck.count(kind) / 4 for kind in range(KINDS)],
        "ANIM": [count / 4 for seat in seats for count in game.animals[seat]],
        "SUMM": [value for seat in seats for value in summary(game.animals[seat])],
        "OWN": by_norm(game.money[observer]),
        "TOTAL": [total(game.money[observer]) / 1000],
        "OPP": [value for seat in seats[1:] for value in opponent(game, observer, seat)],
        "AUC": auction(game, observer),
        "AUCS": auction_seats(game, seats),
        "TRD": trade(game, observer),
        "TRDS": trade_seats(game, seats),
        "COMP": composing(game, observer),
    }
    if game.config["history"]:
        shown["HISTORY"] = history(game, seats)
    return shown


def one_hot(index: int, size: int) -> list[float]:
    """All zeros for an index outside."""
    return [float(position == index) for position in range(size)]


def by_norm(money: Sequence[int]) -> list[float]:
    return [count / norm for count, norm in zip(money, MONEY_NORMS, strict=True)]


def summary(animals: Sequence[int]) -> list[float]:
    return [len(quartets(animals)) / 10, quartet_sum(animals) / 3850, score(animals) / 10000]


def opponent(game: Kuhhandel, observer: int, seat: int) -> list[float]:
    known = game.known[observer][seat]
    cards = sum(game.money[seat])
    unknown = cards - sum(known)
    exact = float(unknown == 0)
    return [cards / 20, *by_norm(known), unknown / 20, exact, total(known) / 1000]


def auction(game: Kuhhandel, observer: int) -> list[float]:
    if game.phase not in AUCTION_PHASES:
        return [0.0] * 15
    now = game.now
    own_digit = game.phase == "TENS" and game.seat == observer
    return [
        *one_hot(now.animal, KINDS),
        QUARTET_VALUES[now.animal] / 1000,
        now.high / 1000,
        float(now.high > 0),
        (now.high + 10) / 1000,
        now.hundreds / 47 if own_digit else 0.0,
    ]


def auction_seats(game: Kuhhandel, seats: Sequence[int]) -> list[float]:
    if game.phase not in AUCTION_PHASES:
        return [0.0] * (5 * len(seats))
    now = game.now
    return [
        *[float(seat == now.auctioneer) for seat in seats],
        *[float(seat == now.high_bidder) for seat in seats],
        *[float(now.passed[seat]) for seat in seats],
        *[float(now.exposed[seat]) for seat in seats],
        *[now.last_bid[seat] / 1000 for seat in seats],
    ]


def trade(game: Kuhhandel, observer: int) -> list[float]:
    if game.phase not in TRADE_PHASES:
        return [0.0] * 16
    deal = game.deal
    takes_part = observer in (deal.challenger, deal.target)
    return [
        *one_hot(deal.animal, KINDS),
        QUARTET_VALUES[deal.animal] / 1000,
        float(deal.stake == 1),
        float(deal.stake == 2),
        sum(deal.offer) / 20,  # zero until the whole offer is laid down
        float(deal.rebid),
        deal.tied / 1000 if takes_part else 0.0,
    ]


def trade_seats(game: Kuhhandel, seats: Sequence[int]) -> list[float]:
    if game.phase not in TRADE_PHASES:
        return [0.0] * (2 * len(seats))
    deal = game.deal
    return [
        *[float(seat == deal.challenger) for seat in seats],
        *[float(seat == deal.target) for seat in seats],
    ]


def composing(game: Kuhhandel, observer: int) -> list[float]:
    pointer, selected = [0.0] * 6, [0] * 6
    if game.phase in COMPOSING_PHASES and game.seat == observer:
        pointer = one_hot(game.pile.denomination, 6)
        selected = game.pile.selected
    price = game.pile.price if game.phase == "PAY" else 0
    committed = [0] * 6
    if game.phase in TRADE_PHASES and observer == game.deal.challenger:
        committed = game.deal.offer
    return [
        *pointer,
        *by_norm(selected),
        total(selected) / 1000,
        price / 1000,
        *by_norm(committed),
    ]


def history(game: Kuhhandel, seats: Sequence[int]) -> list[float]:
    shown: list[float] = []
    for event in reversed(game.events):
        row: list[float] = list(event)
        for column in SEATS_OF_EVENTS.get(event[0], (1, 2)):
            if event[column] != NO_POLICY:
                row[column] = seats.index(event[column])
        row[3] /= 10
        shown.extend(map(float, row))
    return shown + [0.0] * (EVENTS * EVENT_SIZE - len(shown))
