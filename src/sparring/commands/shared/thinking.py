"""What a search saw, as lines of text: moves by visits, their values, and the main line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparring.games.state import State
from sparring.search.search import Found

TOP = 5
"""Moves in the table."""
MAX_LINE = 8
"""Moves of the main line that are shown."""


@dataclass(frozen=True)
class Thought:
    """A search of a player from a position."""

    player: str
    state: State
    found: Found
    line: list[int]
    """Expected actions, the chosen one first."""

    def lines(self, top: int = TOP) -> list[str]:
        """Return a table of the most visited moves; values are those of the seat to move."""
        visits, q = self.found.visits[0], self.found.q[0]
        chosen = np.arange(len(visits)) == self.found.action[0]
        order = np.lexsort((~chosen, -visits))[:top]
        moves = [(self.state.action_name(int(a)), visits[a], q[a]) for a in order if visits[a]]
        total, width = int(visits.sum()), max(4, *(len(name) for name, *_ in moves))
        head = f"{self.player}: {total:,} simulations, value {self.found.value[0]:+.2f}"
        rows = [
            f"  {name:{width}}  {count / total:6.1%}  {value:+.2f}" for name, count, value in moves
        ]
        names = [self.state.action_name(action) for action in self.line[:MAX_LINE]]
        more = " ..." if len(self.line) > MAX_LINE else ""
        titles = f"  {'move':{width}}  {'visits':>6}  value"
        return [head, titles, *rows, f"  line: {' '.join(names)}{more}"]
