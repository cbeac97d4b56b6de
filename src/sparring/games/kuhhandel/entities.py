"""Entities of Kuhhandel for networks with attention: kinds of animals, and seats.

Kinds of money would be six more tokens; they did not speed up learning (docs/guides/networks.md).
"""

from __future__ import annotations

from itertools import chain

from sparring.games.entities import (
    EntityPairActions,
    EntitySet,
    EntitySpec,
    FeatureTable,
    actions_called,
    columns,
    joined,
    rows,
)
from sparring.games.kuhhandel import KINDS, NOTES, VALUES
from sparring.games.rules import Rules

BY_SEAT = ("auctioneer", "high bidder", "passed", "excluded", "last bid", "challenger", "target")


def entities(rules: Rules) -> EntitySpec:
    """Animals and seats are always present; a trade refers to one of each."""
    blocks = ("unseen", "animals", "auction", "trade")
    described = joined(*(columns(rules, block, KINDS) for block in blocks))
    worth = tuple((points / max(VALUES),) for points in VALUES)
    others = range(1, rules.seats)
    trades = {
        (kind, seat): action
        for seat in others
        for kind, action in actions_called(
            rules, [f"trade {name} with seat +{seat}" for name in KINDS]
        ).items()
    }
    return EntitySpec(
        (
            EntitySet("animal", len(KINDS), described, constants=worth),
            EntitySet("seat", rules.seats, seats(rules)),
        ),
        (EntityPairActions("animal", "seat", trades),),
    )


def seats(rules: Rules) -> FeatureTable:
    """Return the features of every seat; the observing seat knows all of its money."""
    money = columns(rules, "own money", NOTES)
    total = columns(rules, "own total", ["money"])
    mine = (None, *chain.from_iterable(money), None, None, *total[0])
    marks = (columns(rules, block, range(rules.seats), "seat +{}") for block in BY_SEAT)
    return joined(rows(rules, "animals", "points"), (mine, *rows(rules, "opponent")), *marks)
