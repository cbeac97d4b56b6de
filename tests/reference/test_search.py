"""The slow search against numbers made by hand."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from reference.search import (
    Edge,
    Node,
    Options,
    Search,
    complete,
    exp,
    fixed_evaluator,
    halve,
    improve,
    ln,
)
from sparring import new_state


def flat(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A network that has learnt nothing, for games of up to 100 actions."""
    return np.zeros((len(rows), 100), np.float32), np.zeros(len(rows), np.float32)


def test_exp_and_ln_are_close_to_the_true_ones() -> None:
    for x in np.linspace(-600, 600, 999):
        assert exp(x) == pytest.approx(math.exp(x), rel=1e-10)
    for x in (1e-10, 0.3, 1.0, 2.0, 1e300):
        assert ln(x) == pytest.approx(math.log(x), rel=1e-10, abs=1e-11)
    assert exp(-1e9) == 0


@pytest.mark.parametrize(
    ("simulations", "considered", "visits"),
    [
        (1, 1, [1]),
        (2, 2, [1, 1]),
        (3, 2, [2, 1]),
        (7, 3, [3, 3, 1]),
        (16, 16, [1] * 16),
        (32, 16, [4] * 4 + [2] * 4 + [1] * 8),
        (50, 16, [12] * 2 + [5] * 2 + [2] * 4 + [1] * 8),
        (64, 16, [15] * 2 + [7] * 2 + [3] * 4 + [1] * 8),
        (64, 1, [64]),
        (64, 2, [32, 32]),
        (20, 4, [8, 8, 2, 2]),
    ],
)
def test_visits_of_sequential_halving(simulations: int, considered: int, visits: list[int]) -> None:
    counted = Counter(halve(simulations, list(range(considered)), sorted))
    assert [counted[edge] for edge in range(considered)] == visits


def test_halving_keeps_what_ranks_higher() -> None:
    assert list(halve(8, [0, 1, 2, 3], lambda edges: sorted(edges)[::-1])) == [
        *(0, 1, 2, 3),
        *(3, 2, 3, 2),
    ]


def test_completed_q_mixes_value_and_visited_q() -> None:
    edges = [Edge(0, 0, 0.5), Edge(1, 1, 0.25), Edge(2, 2, 0.25)]
    assert complete(edges, 0.125) == [0.125] * 3
    edges[0].visits, edges[0].q = 3, 0.5
    edges[1].visits, edges[1].q = 1, -1.0
    weighted = Fraction(1, 2) * Fraction(1, 2) - Fraction(1, 4)
    mixed = (Fraction(1, 8) + 4 * weighted / Fraction(3, 4)) / 5
    assert complete(edges, 0.125) == pytest.approx([0.5, -1.0, float(mixed)], rel=1e-15)


def test_the_improved_policy_is_a_softmax_of_logits_and_q() -> None:
    edges = [Edge(0, 0, 0.5), Edge(1, 1, 0.25), Edge(2, 2, 0.25)]
    edges[1].visits, edges[1].q = 2, 0.125
    completed = np.array(complete(edges, -0.01))
    for options in (Options(c_scale=0.25), Options(rescale=True, c_scale=0.1)):
        span = completed.max() - completed.min()
        q = (completed - completed.min()) / span if options.rescale else completed
        weights = np.array([0.5, 0.25, 0.25]) * np.exp(52 * options.c_scale * q)
        expected = weights / weights.sum()
        assert improve(edges, -0.01, options) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_backup_gives_each_mover_its_own_return(seats: int) -> None:
    state = new_state("skull_king", config={"num_players": seats})
    search = Search(state, 0, fixed_evaluator(state.rules.actions), Options(gamma=0.5))
    nodes = [Node(number, seat=number % seats) for number in range(seats + 2)]
    for child in nodes:
        child.rewards = [float(10 * child.number + seat) for seat in range(seats)]
    path = [(parent, Edge(0, 0, 1.0, child=nodes[parent.number + 1])) for parent in nodes[:-1]]
    end = [float(seat + 1) for seat in range(seats)]
    search.back_up(path, list(end))
    for parent, edge in path:
        seat, discount, expected = parent.seat, 1.0, 0.0
        for later in nodes[parent.number : -1]:
            expected += discount * nodes[later.number + 1].rewards[seat]
            discount *= 0.5 if later.seat == seat else 1.0  # of the mover's own decisions
        assert (edge.visits, edge.q) == (1, expected + discount * end[seat])


@pytest.mark.parametrize("rule", ["gumbel", "puct"])
def test_a_win_is_seen_and_a_loss_avoided(rule: str) -> None:
    options = Options(rule=rule, simulations=200, c_scale=0.1)
    winning = new_state("tic_tac_toe")
    for action in (0, 3, 1, 4):
        winning.apply(action)
    assert Search(winning, 0, flat, options).run().action == 2
    threatened = new_state("tic_tac_toe")
    for action in (0, 4, 8, 3):
        threatened.apply(action)
    assert Search(threatened, 0, flat, options).run().action == 5


def test_the_fixed_evaluator_has_exact_floats() -> None:
    rows = np.random.default_rng(0).integers(0, 256, (100, 32), np.uint8)
    head, value = fixed_evaluator(7)(rows)
    assert head.shape == (100, 7) and value.shape == (100,)
    assert (head * 64 == np.round(head * 64)).all() and abs(head).max() <= 4
    assert (value * 256 == np.round(value * 256)).all() and abs(value).max() <= 1
    again, _ = fixed_evaluator(7)(rows[3:4])
    assert (again[0] == head[3]).all()
    assert len(np.unique(value)) > 50
