"""What small poker games for two share: the position in words."""

from __future__ import annotations

from dataclasses import dataclass

RANKS = ("J", "Q", "K")


@dataclass(frozen=True)
class PokerPosition:
    """A position as people tell it."""

    cards: tuple[str, str]
    table: str
    """The card that both use; "" as long as there is none."""
    chips: tuple[int, int]
    """That each seat has put in."""
    rounds: tuple[tuple[str, ...], ...]
    """What was said, the first seat first in every round."""
    choices: tuple[tuple[int, str], ...]
    """Legal actions and what they are called here."""


def count_chips(chips: int) -> str:
    """Return "1 chip" or "2 chips"."""
    return f"{chips} chip{'s' * (chips != 1)}"
