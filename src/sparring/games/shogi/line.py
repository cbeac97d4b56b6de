"""Records of Shogi games, and replaying them move by move."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sparring.errors import ConfigError
from sparring.games import shogi
from sparring.games.rules import Rules
from sparring.games.shogi.protocol import REFEREE_ENDS, replay, without_referee_ends

BROKEN_BY = ("black broke the rules", "white broke the rules")
ENDS = (
    *("", "resignation", "checkmate", "repetition", "declaration", "draw", "time", "interrupted"),
    *BROKEN_BY,
)
"""Ends of games; "" if unknown."""
RANKS = "abcdefghi"
BREAKING = ("Cc", "Cs", "Zl", "Zp")
"""Kinds of characters that end a line or cannot be written."""


@dataclass(frozen=True)
class GameRecord:
    """A recorded game."""

    moves: tuple[str, ...] = ()
    """USI moves."""
    start: str = shogi.START
    """An SFEN, normalized by `read_sfen`."""
    black: str = ""
    white: str = ""
    end: str = ""
    """One of `ENDS`."""
    actions: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """The moves as actions, if the record was read from a file."""

    def __post_init__(self) -> None:
        if self.end not in ENDS:
            raise ConfigError(f"end={self.end!r} is unknown; there are: {', '.join(ENDS[1:])}")
        for name in (self.black, self.white):
            if any(unicodedata.category(letter) in BREAKING for letter in name):
                raise ConfigError(f"the player's name {name!r} does not fit on one line")
        object.__setattr__(self, "start", shogi.read_sfen(MoveLine(self.start).state))


class MoveLine:
    """A game replayed move by move. Only mate ends it; other ends come from the record."""

    def __init__(self, start: str) -> None:
        self.state = replay(without_referee_ends(Rules("shogi")), start, ())
        self.moves: list[str] = []
        self.actions: list[int] = []
        """The moves as actions."""

    @property
    def side(self) -> int:
        """Whose turn it is: 0 for Black, 1 for White."""
        return "bw".index(shogi.read_sfen(self.state).split()[1])

    def piece(self, square: str) -> str:
        """Return the SFEN piece on a square, "." if it is empty."""
        file, rank = square_numbers(square)
        row = shogi.read_sfen(self.state).split("/")[rank - 1].split()[0]
        return shogi.cells(row)[9 - file]

    def movers_piece(self, square: str) -> str:
        """Return the mover's piece on a square in upper case, "" if there is none."""
        piece = self.piece(square)
        mine = piece[-1].isupper() if self.side == 0 else piece[-1].islower()
        return piece.upper() if mine else ""

    def play(self, move: str) -> None:
        action = shogi.action_of(self.state, move)
        self.state.apply(action)
        if self.state.end in REFEREE_ENDS:
            shogi.set_sfen(self.state, shogi.read_sfen(self.state))
        self.moves.append(move)
        self.actions.append(action)


def moved_piece(line: MoveLine, move: str) -> str:
    """Return the piece that a legal move moves or drops, in upper case, with + if promoted."""
    return move[0] if "*" in move else line.movers_piece(move[:2])


def follow(record: GameRecord) -> Iterator[tuple[MoveLine, str]]:
    """Yield each move with the game before it; illegal moves raise."""
    line = MoveLine(record.start)
    for move in record.moves:
        shogi.action_of(line.state, move)
        yield line, move
        line.play(move)


def record_error(number: int, line: MoveLine | None, error: Exception) -> ConfigError:
    """Return an error with the line in the file and the number of the next move."""
    move = f" (move {len(line.moves) + 1})" if line else ""
    return ConfigError(f"line {number}: {error}{move}")


def square_name(file: int, rank: int) -> str:
    """Return a square of which both numbers count from 1."""
    return f"{file}{RANKS[rank - 1]}"


def square_numbers(square: str) -> tuple[int, int]:
    """Return file and rank of a square, both from 1."""
    return int(square[0]), RANKS.index(square[1]) + 1


def next_side(record: GameRecord) -> int:
    """Return whose turn it is at the end: 0 for Black, 1 for White."""
    first = "bw".index(record.start.split()[1])
    return (first + len(record.moves)) % 2


def sfen_of(squares: Mapping[str, str], hands: Iterable[str], side: int, number: int = 1) -> str:
    """Return a position from pieces by square and the pieces in hand, SFEN letters all of them."""
    rows = []
    for rank in RANKS:
        row = "".join(squares.get(f"{file}{rank}", " ") for file in range(9, 0, -1))
        rows.append(re.sub(" +", lambda gap: str(len(gap[0])), row))
    held = sorted(hands, key="RBGSNLPrbgsnlp".index)
    counts = {piece: held.count(piece) for piece in held}
    shown = "".join(f"{n if n > 1 else ''}{piece}" for piece, n in counts.items()) or "-"
    return f"{'/'.join(rows)} {'bw'[side]} {shown} {number}"
