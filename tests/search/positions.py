"""Positions whose values are known exactly, for measuring agents.

Tic-tac-toe has all 4,520 positions that games reach and that are not over. Connect Four has 1,000
of plies 0 to 30 (`connect_four.txt`, written by `solver.py`), each with a move that gives value
away.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sparring import Pool, Rules, State, new_state

FILE = Path(__file__).with_name("connect_four.txt")
LINES = ("012", "345", "678", "036", "147", "258", "048", "246")


@dataclass(frozen=True)
class Position:
    """A position that is not over, with its exact values for the side to move."""

    game: str
    moves: tuple[int, ...]
    """From the start of the game."""
    value: int
    """With best play of both: 1 wins, 0 draws, -1 loses."""
    values: dict[int, int]
    """Of every legal action."""

    @property
    def tells(self) -> bool:
        """Whether some move gives value away."""
        return min(self.values.values()) < self.value

    def state(self) -> State:
        """Return a new state with the position."""
        return state_after(self.game, self.moves)


def state_after(game: str, moves: Iterable[int]) -> State:
    """Return a new state after these moves."""
    state = new_state(rules_of(game))
    for move in moves:
        state.apply(move)
    return state


@cache
def rules_of(game: str) -> Rules:
    return Rules(game)


def keeps_value(position: Position, action: int) -> bool:
    """Return whether a move is as good as the best one."""
    return position.values[int(action)] == position.value


def positions(game: str) -> list[Position]:
    """Return the solved positions of a game, by ply."""
    return SOLVED[game]()


def pools(found: list[Position]) -> Iterator[tuple[list[Position], Pool]]:
    """Yield the positions of each ply, with a pool whose games stand there: row i is position i."""
    for ply, group in itertools.groupby(found, key=lambda position: len(position.moves)):
        same = list(group)
        pool = Pool(same[0].game, len(same), threads=1)
        pool.reset()
        for at in range(ply):
            pool.step([position.moves[at] for position in same])
        yield same, pool


@cache
def connect_four() -> list[Position]:
    return [read_line(line) for line in FILE.read_text().splitlines()]


def read_line(line: str) -> Position:
    """Read columns 0 to 6 ("-" if there are none), the value, the value of each column or "."."""
    moves, value, *columns = line.split()
    values = {at: int(text) for at, text in enumerate(columns) if text != "."}
    return Position("connect_four", tuple(map(int, moves.strip("-"))), int(value), values)


def line_of(position: Position) -> str:
    columns = [str(position.values.get(at, ".")) for at in range(7)]
    return " ".join([text_of(position.moves), str(position.value), *columns])


def text_of(moves: tuple[int, ...]) -> str:
    return "".join(map(str, moves)) or "-"


@cache
def tic_tac_toe() -> list[Position]:
    reached = {"." * 9: ()}
    found = []
    while reached:
        found += [solved_board(board, moves) for board, moves in reached.items()]
        reached = {
            next_board: (*moves, cell)
            for board, moves in reached.items()
            for cell, next_board in boards_after(board).items()
            if boards_after(next_board)
        }
    return found


def solved_board(board: str, moves: tuple[int, ...]) -> Position:
    values = {cell: -board_value(after) for cell, after in boards_after(board).items()}
    return Position("tic_tac_toe", moves, max(values.values()), values)


@cache
def board_value(board: str) -> int:
    """Return the value of a board for the side to move, by minimax."""
    if has_won(board, "x") or has_won(board, "o"):
        return -1
    return max((-board_value(after) for after in boards_after(board).values()), default=0)


def boards_after(board: str) -> dict[int, str]:
    """Return the boards after every legal move, none after the end."""
    if has_won(board, "x") or has_won(board, "o"):
        return {}
    mover = "xo"[(9 - board.count(".")) % 2]
    empty = [cell for cell in range(9) if board[cell] == "."]
    return {cell: board[:cell] + mover + board[cell + 1 :] for cell in empty}


def has_won(board: str, player: str) -> bool:
    return any(all(board[int(cell)] == player for cell in line) for line in LINES)


SOLVED: dict[str, Callable[[], list[Position]]] = {
    "connect_four": connect_four,
    "tic_tac_toe": tic_tac_toe,
}
