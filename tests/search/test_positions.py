"""Solved positions: the solver against plain minimax, and the file against the solver."""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from reference.connect_four import Board
from search.positions import Position, keeps_value, line_of, pools, positions, read_line
from search.solver import (
    COUNT,
    EARLY,
    PLIES,
    Solver,
    board_of,
    build,
    chosen,
    drawn,
    is_opening,
    played,
    start_solver,
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("solver"))


@pytest.fixture(scope="module")
def solver(program: Path) -> Iterator[Solver]:
    with start_solver(program, table_bits=18) as started:
        yield started


def board_after(moves: tuple[int, ...]) -> Board:
    board = Board()
    for column in moves:
        board = board.play(column)
    return board


def minimax(board: Board) -> int:
    """Return the value of a position for its mover, all games from there played out."""
    if board.winner() >= 0:
        return -1
    return max((-minimax(board.play(column)) for column in board.legal()), default=0)


def late_games(count: int) -> list[tuple[int, ...]]:
    """Return moves of games with at most seven empty cells."""
    rng, found = random.Random(1), []
    while len(found) < count:
        if moves := played(rng.randrange(35, 42), rng):
            found.append(moves)
    return found


@pytest.mark.parametrize(
    "moves",
    [
        *late_games(12)[:4],
        *(pytest.param(moves, marks=pytest.mark.slow) for moves in late_games(12)[4:]),
    ],
    ids=str,
)
def test_the_solver_finds_what_minimax_finds(moves: tuple[int, ...], solver: Solver) -> None:
    board = board_after(moves)
    found = solver.solve(moves)
    assert found.values == {at: -minimax(board.play(at)) for at in board.legal()}
    assert found.value == max(found.values.values())


@pytest.mark.parametrize("game", ["connect_four", "tic_tac_toe"])
def test_positions_are_legal_and_not_over(game: str) -> None:
    for position in positions(game):
        state = position.state()
        assert not state.over
        assert list(state.legal()) == sorted(position.values)
        assert position.value == max(position.values.values())


def test_ends_are_those_of_the_plain_rules() -> None:
    for position in positions("connect_four"):
        board = board_after(position.moves)
        assert board.legal() == sorted(position.values)
        for column, value in position.values.items():
            after = board.play(column)
            if after.winner() >= 0:
                assert value == 1
            elif not after.legal():
                assert value == 0


def test_every_position_of_connect_four_tells_moves_apart() -> None:
    for position in positions("connect_four"):
        kept = [keeps_value(position, column) for column in position.values]
        assert any(kept)
        assert not all(kept)


def test_positions_of_connect_four_differ_and_are_spread_over_plies() -> None:
    found = positions("connect_four")
    assert len({board_of(position.moves) for position in found}) == len(found) == COUNT
    counts = collections.Counter(len(position.moves) for position in found)
    few = {0: 1} | EARLY
    assert {ply: counts[ply] for ply in few} == few
    more = [counts[ply] for ply in PLIES if ply not in few]
    assert max(more) - min(more) <= 1


@pytest.mark.slow
def test_no_position_of_connect_four_is_an_opening_of_training() -> None:
    assert is_opening((3,))
    assert not any(is_opening(position.moves) for position in positions("connect_four"))


def test_all_positions_of_the_first_plies_are_drawn() -> None:
    assert [len(list(drawn(ply))) for ply in (0, 1, 2)] == [1, 4, 25]  # but for reflections


def test_the_empty_board_is_won_by_the_middle_alone() -> None:
    first = positions("connect_four")[0]
    assert first.moves == ()
    assert line_of(first) == "- 1 -1 -1 0 1 0 -1 -1"


def test_late_positions_of_the_file_are_solved_again(solver: Solver) -> None:
    for position in positions("connect_four"):
        if len(position.moves) >= 18:
            assert solver.solve(position.moves) == position


def test_a_sample_of_the_file_is_solved_again(solver: Solver) -> None:
    middle = [p for p in positions("connect_four") if 11 <= len(p.moves) < 18]
    for position in random.Random(1).sample(middle, 12):
        assert solver.solve(position.moves) == position


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_sample_of_the_early_plies_is_solved_again(program: Path) -> None:
    rng = random.Random(1)
    with start_solver(program, table_bits=25) as large:
        for ply in PLIES[4:11]:
            same = [p for p in positions("connect_four") if len(p.moves) == ply]
            for position in rng.sample(same, 2):
                assert large.solve(position.moves) == position


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_file_is_what_the_generator_writes(program: Path) -> None:
    with start_solver(program, table_bits=25) as large:
        for ply in PLIES[12:]:
            same = [p for p in positions("connect_four") if len(p.moves) == ply]
            assert chosen(ply, len(same), large) == same


def test_reflected_positions_have_reflected_values(solver: Solver) -> None:
    for position in positions("connect_four")[-100:]:
        turned = solver.solve(tuple(6 - column for column in position.moves))
        assert turned.values == {6 - at: value for at, value in position.values.items()}


def test_any_number_of_threads_choose_the_same(program: Path, solver: Solver) -> None:
    with start_solver(program, table_bits=18, threads=3) as several:
        assert chosen(24, 12, several) == chosen(24, 12, solver)


def test_the_file_has_the_positions_chosen_first(solver: Solver) -> None:
    first = [position for position in positions("connect_four") if len(position.moves) == 30][:5]
    assert chosen(30, 5, solver) == first


def test_what_was_kept_is_not_solved_again(program: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.txt"
    some = list(itertools.islice(drawn(30), 4))
    with start_solver(program, table_bits=12, keep=kept) as first:
        found = first.solve_all(some[:3])
    with start_solver(program, table_bits=12, keep=kept) as again:
        assert list(again.known.values()) == found
        found = again.solve_all(some)
    assert [read_line(line) for line in kept.read_text().splitlines()] == found


def test_lines_are_read_as_they_were_written() -> None:
    for line in ("- 1 -1 -1 0 1 0 -1 -1", "333333 0 -1 -1 0 . 0 -1 -1"):
        assert line_of(read_line(line)) == line


def test_tic_tac_toe_has_all_positions() -> None:
    found = positions("tic_tac_toe")
    assert len(found) == 4520
    assert len({str(position.state()) for position in found}) == 4520
    assert found[0].value == 0
    assert set(found[0].values.values()) == {0}  # every first move draws


@pytest.mark.parametrize(
    ("moves", "value", "best"),
    [
        ((0, 3, 1, 4), 1, {2}),  # wins at once, and need not block
        ((0, 4, 1), 0, {2}),  # must block
        ((0, 1, 4), -1, set(range(2, 9)) - {4}),  # lost, whatever is played
    ],
)
def test_values_of_tic_tac_toe(moves: tuple[int, ...], value: int, best: set[int]) -> None:
    (found,) = [p for p in positions("tic_tac_toe") if same_board(p.moves, moves)]
    assert found.value == value
    assert {cell for cell in found.values if keeps_value(found, cell)} == best


def same_board(one: tuple[int, ...], two: tuple[int, ...]) -> bool:
    return all(set(one[seat::2]) == set(two[seat::2]) for seat in (0, 1))


@pytest.mark.few(1)
@pytest.mark.parametrize("game", ["connect_four", "tic_tac_toe"])
def test_pools_stand_at_the_positions(game: str) -> None:
    seen: list[Position] = []
    for same, pool in pools(positions(game)):
        states = [position.state() for position in same]
        wanted = [state.observe_bytes(state.seat) for state in states]
        np.testing.assert_array_equal(pool.batch().obs, wanted)
        seen += same
    assert seen == positions(game)
