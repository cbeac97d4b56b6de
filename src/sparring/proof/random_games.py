"""Whole games of random legal actions, and the error of a property that they break."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparring.games.rules import Rules
from sparring.games.state import State, new_state


class Broken(Exception):  # noqa: N818
    """A property does not hold."""


def require(holds: bool, detail: str) -> None:
    """Raise `Broken` unless the property holds."""
    if not holds:
        raise Broken(detail)


def random_action(state: State, rng: np.random.Generator) -> Any:
    """Draw a legal action for every row."""
    rows = range(state.rules.rows)
    if state.rules.box:
        return rng.uniform(-1, 1, (state.rules.rows, state.rules.box)).astype(np.float32)
    chosen = [int(rng.choice(state.legal(row))) if state.legal(row) else 0 for row in rows]
    return chosen if state.rules.rows > 1 else chosen[0]


def random_game(rules: Rules, seed: int, most: int = 1_000_000) -> list[tuple[State, Any]]:
    """Play a game at random; return every position before its action, the last with None."""
    rng = np.random.default_rng(seed)
    state = new_state(rules, seed=seed)
    steps: list[tuple[State, Any]] = []
    while not state.over:
        action = random_action(state, rng)
        steps.append((state.clone(), action))
        state.apply(action)
        require(len(steps) < most, f"a game did not end within {most:,} decisions")
    return [*steps, (state, None)]
