"""Search with a network that knows the exact values gives none of them away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from search.positions import keeps_value, pools, positions, rules_of
from sparring.search.budget import Budget
from sparring.search.search import Search

GAME = "tic_tac_toe"


def perfect_network(certainty: float) -> Any:
    """Return an evaluator: the exact value, and the exact values of moves as logits."""
    known = {}
    for position in positions(GAME):
        logits = np.zeros(rules_of(GAME).actions, np.float32)
        logits[list(position.values)] = list(position.values.values())
        state = position.state()
        known[state.observe_bytes(state.seat).tobytes()] = certainty * logits, position.value

    def evaluate(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits, values = zip(*(known[row.tobytes()] for row in rows), strict=True)
        return np.stack(logits), np.float32(values)

    return evaluate


def lost(evaluate: Any, budget: str) -> int:
    """Return the number of positions whose value a search gives away."""
    count = 0
    for same, pool in pools(positions(GAME)):
        search = Search(rules_of(GAME), evaluate, Budget.parse(budget), trees=len(same))
        moves = search.from_pool(pool, np.arange(len(same))).action
        count += sum(not keeps_value(p, move) for p, move in zip(same, moves, strict=True))
    return count


@pytest.mark.parametrize(
    "budget",
    ["1", "2", "16", *(pytest.param(b, marks=pytest.mark.slow) for b in ("64", "64/puct"))],
)
def test_a_perfect_network_stays_perfect(budget: str) -> None:
    assert lost(perfect_network(certainty=4.0), budget) == 0


def test_exact_values_alone_are_enough_for_puct() -> None:
    assert lost(perfect_network(certainty=0.0), "64/puct") == 0


def test_exact_values_alone_are_nearly_enough_for_gumbel() -> None:
    """A node does not try a move for which the mean of the others, weighted by priors, is low."""
    assert lost(perfect_network(certainty=0.0), "64") <= 4520 // 100
