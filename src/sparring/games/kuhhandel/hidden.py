"""Hidden information of Kuhhandel: the money of the other seats."""

from __future__ import annotations

from typing import Any

from sparring.games.hidden import Hidden, of_others
from sparring.games.kuhhandel import NOTES
from sparring.games.rules import Rules

PLAYERS = 5
"""Seats in the state."""
MAX_COUNT = 11
"""Largest count of one note that has its class; higher counts share the last class."""


def hidden(rules: Rules) -> Hidden:
    """Return the counts of every note, for every other seat relative to the observer."""
    seats = rules.seats

    def read(library: Any, raw: Any, seat: Any) -> Any:
        # known[p][p] is the hand of p: a byte for every note.
        known = raw.reshape(len(raw), PLAYERS, PLAYERS, 8)[..., : len(NOTES)]
        hands = of_others(library, [known[:, one, one] for one in range(seats)], seat)
        return library.clip(hands.reshape(len(raw), -1), 0, MAX_COUNT)

    items = tuple(f"{away} to the left: {note}" for away in range(1, seats) for note in NOTES)
    counts = (*map(str, range(MAX_COUNT)), f"{MAX_COUNT} or more")
    return Hidden("known", items, counts, read)
