"""What a search saw, as lines of text: moves by visits or probability, values, the main line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sparring.games.state import State
from sparring.games.terminal import Terminal
from sparring.search.search import Found
from sparring.search.worlds import uses_worlds

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

    def lines(self, terminal: Terminal, top: int = TOP) -> list[str]:
        """Return a table of the most visited moves. terminal: names the moves."""
        named = partial(name_of, terminal, self.state)
        line = line_names(terminal, self.state, self.line[:MAX_LINE])
        line += ["..."] if len(self.line) > MAX_LINE else []
        if uses_worlds(self.state.rules):
            return describe_worlds(self.player, self.found, named, top)
        return describe_search(self.player, self.found, named, line, top)


def describe_search(
    player: str, found: Found, named: Callable[[int], str], line: Sequence[str], top: int = TOP
) -> list[str]:
    """Return a table of the most visited moves; values are those of the seat to move."""
    visits, q = found.visits[0], found.q[0]
    chosen = np.arange(len(visits)) == found.action[0]
    order = np.lexsort((~chosen, -visits))[:top]
    moves = [(named(int(a)), visits[a], q[a]) for a in order if visits[a] or chosen[a]]
    total, width = int(visits.sum()), max(4, *[len(name) for name, *_ in moves])
    head = f"{player}: {total:,} simulations, value {found.value[0]:+.2f}"
    rows = [
        f"  {name:{width}}  {count / max(total, 1):6.1%}  {value:+.2f}"
        for name, count, value in moves
    ]
    titles = f"  {'move':{width}}  {'visits':>6}  value"
    return [head, titles, *rows, f"  line: {' '.join(line)}"]


def describe_worlds(
    player: str, found: Found, named: Callable[[int], str], top: int = TOP
) -> list[str]:
    """Return a table of the most probable moves; `-`: not tried."""
    policy, visits, q = found.policy[0], found.visits[0], found.q[0]
    order = np.argsort(-policy, kind="stable")[:top]
    moves = [(named(int(a)), policy[a], visits[a], q[a]) for a in order if policy[a] > 0]
    width = max(4, *[len(name) for name, *_ in moves])
    head = f"{player}: {int(visits.sum()):,} playouts in {visits.max():,} worlds"
    rows = [
        f"  {name:{width}}  {share:6.1%}  {f'{value:+.2f}' if tried else '    -'}"
        for name, share, tried, value in moves
    ]
    return [f"{head}, value {found.value[0]:+.2f}", f"  {'move':{width}}  policy  value", *rows]


def name_of(terminal: Terminal, state: State, action: int) -> str:
    """Return the name of an action as a person types it."""
    names = {choice.action: choice.short for choice in terminal.choices(state) if not choice.then}
    return names.get(action) or state.action_name(action)


def line_names(terminal: Terminal, state: State, actions: Sequence[int]) -> list[str]:
    """Return the names of a line of actions; where chance decides, positions are not followed."""
    if state.rules.chance:
        return [state.action_name(action) for action in actions]
    state, names = state.clone(), []
    for action in actions:
        names.append(name_of(terminal, state, action))
        state.apply(action)
    return names
