"""Positions of small poker games for two, shared by pictures and terminals."""

from __future__ import annotations

from dataclasses import dataclass

RANKS = ("J", "Q", "K")


@dataclass(frozen=True)
class PokerPosition:
    """A position in card ranks and action names."""

    cards: tuple[str, str]
    table: str
    """The public card; "" before it is dealt."""
    chips: tuple[int, int]
    """Chips in the pot, by seat."""
    rounds: tuple[tuple[str, ...], ...]
    """Actions of every betting round by name, beginning with seat 0."""
    choices: tuple[tuple[int, str], ...]
    """Legal actions with their names in this position."""


def count_chips(chips: int) -> str:
    """Return "1 chip" or "2 chips"."""
    return f"{chips} chip{'s' * (chips != 1)}"
