"""Hidden information of Skull King: which seat holds which card."""

from __future__ import annotations

from typing import Any

from sparring.games.hidden import Hidden
from sparring.games.rules import Rules
from sparring.games.skull_king import card_short_name

CARDS, SEATS = 74, 8
"""Bits per hand, and hands, in the state."""


def hidden(rules: Rules) -> Hidden:
    """Return the holder of every card, relative to the observing seat."""
    seats = rules.seats

    def read(library: Any, raw: Any, seat: Any) -> Any:
        hands = raw.reshape(len(raw), SEATS, -1)
        bits = library.stack([hands >> bit & 1 for bit in range(8)], -1)
        held = bits.reshape(len(raw), SEATS, -1)[:, :, :CARDS]
        # At most one seat holds a card, so the sum is its relative seat; 0 for the observer.
        return sum(held[:, other] * ((other - seat) % seats)[:, None] for other in range(seats))

    cards = tuple(card_short_name(card) for card in range(CARDS))
    others = tuple(f"{away} to the left" for away in range(1, seats))
    return Hidden("hand", cards, ("nobody else", *others), read, dull=0)
