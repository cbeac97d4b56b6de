"""What Kuhhandel names for networks with attention: kinds of animals, and seats.

Kinds of money would be six tokens more, for which nothing was learned faster (docs/attention.md).
"""

from __future__ import annotations

from itertools import chain

from sparring.games.kuhhandel import KINDS, NOTES, VALUES
from sparring.games.rules import Rules
from sparring.games.things import (
    Declared,
    Pairs,
    Places,
    Things,
    actions_called,
    columns,
    joined,
    rows,
)

BY_SEAT = ("auctioneer", "high bidder", "passed", "excluded", "last bid", "challenger", "target")


def things(rules: Rules) -> Declared:
    """All of them are always there; who trades names a kind and a seat."""
    blocks = ("unseen", "animals", "auction", "trade")
    told = joined(*(columns(rules, block, KINDS) for block in blocks))
    worth = tuple((points / max(VALUES),) for points in VALUES)
    others = range(1, rules.seats)
    trades = {
        (kind, seat): action
        for seat in others
        for kind, action in actions_called(
            rules, [f"trade {name} with seat +{seat}" for name in KINDS]
        ).items()
    }
    return Declared(
        (
            Things("animal", len(KINDS), told, facts=worth),
            Things("seat", rules.seats, seats(rules)),
        ),
        (Pairs("animal", "seat", trades),),
    )


def seats(rules: Rules) -> Places:
    """What is told of every seat; of the own one all money is known."""
    own = columns(rules, "own money", NOTES)
    total = columns(rules, "own total", ["money"])
    mine = (None, *chain.from_iterable(own), None, None, *total[0])
    marks = (columns(rules, block, range(rules.seats), "seat +{}") for block in BY_SEAT)
    return joined(rows(rules, "animals", "points"), (mine, *rows(rules, "opponent")), *marks)
