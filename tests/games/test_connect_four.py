"""Connect Four against rules written down plainly, and its bots against plain minimax."""

from __future__ import annotations

import random

import numpy as np
import pytest

import sparring
from reference.connect_four import COLUMNS, HEIGHT, Board, value
from sparring import Rules, State, new_state

RULES = Rules("connect_four")


def check_same(state: State, board: Board) -> None:
    assert state.over == (not board.legal())
    if not state.over:
        assert list(state.legal()) == board.legal()
    for seat in (0, 1):
        features = state.observe(seat)
        cells = [board.at(at % COLUMNS, at // COLUMNS) for at in range(COLUMNS * HEIGHT)]
        expected = [owner == seat for owner in cells] + [owner == 1 - seat for owner in cells]
        np.testing.assert_array_equal(features[: len(expected)], np.array(expected, np.float32))
        assert features[len(expected)] == (not state.over and board.mover == seat)


@pytest.mark.parametrize(
    "seed",
    [*range(25), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(25, 100))],
)
def test_games_are_those_of_the_plain_rules(seed: int) -> None:
    rng, state, board = random.Random(seed), new_state(RULES, seed=seed), Board()
    while not state.over:
        check_same(state, board)
        column = rng.choice(board.legal())
        state.apply(column)
        board = board.play(column)
    check_same(state, board)
    winner = board.winner()
    assert list(state.scores) == ([0, 0] if winner < 0 else [1 - 2 * winner, 2 * winner - 1])


def test_a_full_column_is_refused() -> None:
    state = new_state(RULES)
    for _ in range(3):
        state.apply(3)
        state.apply(3)
    with pytest.raises(sparring.SparringError):
        state.apply(3)


@pytest.mark.parametrize(
    ("moves", "answer"),
    [
        ("abacad", "a"),  # four upwards are there to be made
        ("dcdcd", "d"),  # and to be blocked
        ("dbebf", "cg"),
    ],
)
@pytest.mark.parametrize("bot", RULES.bots)
def test_bots_win_and_block(moves: str, answer: str, bot: str) -> None:
    if bot == "random":
        return
    state = new_state(RULES, seed=1)
    for move in moves:
        state.apply("abcdefg".index(move))
    assert "abcdefg"[state.ask(bot)] in answer


@pytest.mark.parametrize(
    "seed",
    [
        7,
        11,
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12) if seed not in (7, 11)),
    ],
)
def test_alpha_beta_chooses_a_best_move_of_plain_minimax(seed: int) -> None:
    rng, state, board = random.Random(seed), new_state(RULES, seed=seed), Board()
    for _ in range(rng.randrange(4, 24)):
        legal = board.legal()
        if not legal:
            return
        column = rng.choice(legal)
        if board.play(column).winner() >= 0:
            continue
        state.apply(column)
        board = board.play(column)
    if state.over or any(
        board.play(column).winner() >= 0
        or Board(board.columns, 1 - board.mover).play(column).winner() >= 0
        for column in board.legal()
    ):
        return  # what bots do at once is tested above
    values = {column: -value(board.play(column), 3) for column in board.legal()}
    assert values[state.ask("ab4")] == max(values.values())


def points(first: str, second: str, games: int) -> float:
    """Return the wins of the first, draws as half, with both colors in turn."""
    total = 0.0
    for seed in range(games):
        state = new_state(RULES, seed=seed)
        seats = [first, second] if seed % 2 == 0 else [second, first]
        while not state.over:
            state.apply(state.ask(seats[state.seat]))
        total += (1 + state.scores[seats.index(first)]) / 2
    return total


@pytest.mark.parametrize(
    ("stronger", "weaker"), [("careful", "random"), ("ab4", "careful"), ("ab6", "ab4")]
)
def test_the_ladder(stronger: str, weaker: str) -> None:
    assert points(stronger, weaker, 40) >= 24
