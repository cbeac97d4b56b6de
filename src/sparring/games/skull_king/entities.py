"""Entities of Skull King for networks with attention: cards in hand, and seats."""

from __future__ import annotations

from sparring.games.entities import (
    EntityActions,
    EntitySet,
    EntitySpec,
    actions_called,
    block_of,
    rows,
)
from sparring.games.rules import Rules
from sparring.games.skull_king import has_ghost

TIGRESS = "Tigress"
SUITS = ("Black", "Green", "Purple", "Yellow")
KINDS = ("Skull King", "White Whale", "Kraken", "Mermaid", "Pirate", "Escape", TIGRESS, "Loot")
MAX_NUMBER = 14
"""The number of the highest card of a suit."""


def entities(rules: Rules) -> EntitySpec:
    """Cards in hand and seats. Features of a seat include the card that it played."""
    hand = block_of(rules, "hand")
    assert hand
    names = hand.columns
    cards = EntitySet(
        "card",
        len(names),
        present=tuple(range(hand.first, hand.first + len(names))),
        max_present=max_hand(rules),
        constants=tuple(map(card_constants, names)),
    )
    features = rows(rules, "trick", "seat", "extra seat?")
    seats = EntitySet("seat", len(features), features)
    play = [f"{TIGRESS} as pirate" if name == TIGRESS else name for name in names]
    escape = [f"{name} as escape" for name in names]
    lead = ["lead yourself", *(f"let seat +{at} lead" for at in range(1, rules.seats))]
    return EntitySpec(
        (cards, seats),
        (
            EntityActions("card", actions_called(rules, play)),
            EntityActions("card", actions_called(rules, escape)),
            EntityActions("seat", actions_called(rules, lead)),
        ),
    )


def card_constants(card: str) -> tuple[float, ...]:
    """One-hot suit or kind of a card, and its number within the suit, scaled to 0..1."""
    suit, _, number = card.partition(" ")
    one_hot = [float(suit == one) for one in SUITS]
    one_hot += [float(card.startswith(one)) for one in KINDS]
    return (*one_hot, int(number) / MAX_NUMBER if suit in SUITS else 0.0)


def max_hand(rules: Rules) -> int:
    """Most cards that a seat can hold; with abilities it draws two after the first trick."""
    config = rules.config
    players, deck = config["num_players"], int(config["deck"][-2:])
    limit: int = min(10, deck // (3 if has_ghost(rules) else players))
    if players == 8:
        limit = min(limit, config["cap8"])
    hands = [min(int(size), limit) for size in config["rounds"]]
    return max(hands) + int(config["abilities"])
