"""Connect Four written down plainly: columns are lists, lines are counted cell by cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

COLUMNS, HEIGHT = 7, 6
DIRECTIONS = ((1, 0), (0, 1), (1, 1), (1, -1))


@cache
def lines() -> list[list[tuple[int, int]]]:
    """Return the 69 lines of four cells."""
    found = []
    for column in range(COLUMNS):
        for row in range(HEIGHT):
            for right, up in DIRECTIONS:
                line = [(column + step * right, row + step * up) for step in range(4)]
                if all(0 <= c < COLUMNS and 0 <= r < HEIGHT for c, r in line):
                    found.append(line)
    return found


@dataclass
class Board:
    """A position: the stones of every column from below, 0 and 1 by seat."""

    columns: list[list[int]] = field(default_factory=lambda: [[] for _ in range(COLUMNS)])
    mover: int = 0

    def at(self, column: int, row: int) -> int:
        """Return the owner of a cell, -1 if it is empty."""
        stones = self.columns[column]
        return stones[row] if row < len(stones) else -1

    def legal(self) -> list[int]:
        """Return the columns that are not full, none after the end."""
        if self.winner() >= 0:
            return []
        return [at for at, stones in enumerate(self.columns) if len(stones) < HEIGHT]

    def play(self, column: int) -> Board:
        """Return the position after a move."""
        columns = [list(stones) for stones in self.columns]
        columns[column].append(self.mover)
        return Board(columns, 1 - self.mover)

    def winner(self) -> int:
        """Return the seat with four in a row, -1 if there is none."""
        for line in lines():
            owners = {self.at(*cell) for cell in line}
            if len(owners) == 1 and -1 not in owners:
                return owners.pop()
        return -1

    def completing(self, seat: int) -> set[tuple[int, int]]:
        """Return the empty cells that would complete four in a row for a seat."""
        found = set()
        for line in lines():
            empty = [cell for cell in line if self.at(*cell) < 0]
            if len(empty) == 1 and all(self.at(*cell) in (seat, -1) for cell in line):
                found.add(empty[0])
        return found


def evaluate(board: Board) -> int:
    """Return the bots' estimate of a position for its mover."""
    mine, other = board.mover, 1 - board.mover
    middle = board.columns[COLUMNS // 2]
    threats = len(board.completing(mine)) - len(board.completing(other))
    return 4 * threats + middle.count(mine) - middle.count(other)


def value(board: Board, depth: int, ply: int = 0, win: int = 10_000) -> int:
    """Return the value of a position for its mover by plain minimax."""
    legal = board.legal()
    if any(board.play(column).winner() >= 0 for column in legal):
        return win - ply
    if not legal:
        return 0
    if depth == 0:
        return evaluate(board)
    return max(-value(board.play(column), depth - 1, ply + 1, win) for column in legal)
