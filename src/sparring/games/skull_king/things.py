"""What Skull King names for networks with attention: the cards in hand and the seats."""

from __future__ import annotations

from sparring.games.rules import Rules
from sparring.games.skull_king import has_ghost
from sparring.games.things import (
    Declared,
    Points,
    Things,
    actions_called,
    block_of,
    rows,
)

TIGRESS = "Tigress"
SUITS = ("Black", "Green", "Purple", "Yellow")
KINDS = ("Skull King", "White Whale", "Kraken", "Mermaid", "Pirate", "Escape", TIGRESS, "Loot")
LARGEST = 14
"""The number of the highest card of a suit."""


def things(rules: Rules) -> Declared:
    """Cards and seats. A card on the table is told by the seat that laid it."""
    hand = block_of(rules, "hand")
    assert hand
    names = hand.columns
    cards = Things(
        "card",
        len(names),
        present=tuple(range(hand.first, hand.first + len(names))),
        most=largest_hand(rules),
        facts=tuple(map(facts_of, names)),
    )
    told = rows(rules, "trick", "seat", "extra seat?")
    seats = Things("seat", len(told), told)
    play = [f"{TIGRESS} as pirate" if name == TIGRESS else name for name in names]
    escape = [f"{name} as escape" for name in names]
    lead = ["lead yourself", *(f"let seat +{at} lead" for at in range(1, rules.seats))]
    return Declared(
        (cards, seats),
        (
            Points("card", actions_called(rules, play)),
            Points("card", actions_called(rules, escape)),
            Points("seat", actions_called(rules, lead)),
        ),
    )


def facts_of(card: str) -> tuple[float, ...]:
    """Suit or kind of a card, and its number within the suit."""
    suit, _, number = card.partition(" ")
    told = [float(suit == one) for one in SUITS] + [float(card.startswith(one)) for one in KINDS]
    return (*told, int(number) / LARGEST if suit in SUITS else 0.0)


def largest_hand(rules: Rules) -> int:
    """Cards that a seat can hold; with abilities two are drawn after the first trick."""
    config = rules.config
    players, deck = config["num_players"], int(config["deck"][-2:])
    most: int = min(10, deck // (3 if has_ghost(rules) else players))
    if players == 8:
        most = min(most, config["cap8"])
    hands = [min(int(size), most) for size in config["rounds"]]
    return max(hands) + int(config["abilities"])
