"""Games of Shogi in files: KIF, CSA and USI, read and written. Every move is checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparring.errors import ConfigError, SparringError
from sparring.games import shogi
from sparring.games.rules import Rules
from sparring.games.shogi_usi import (
    ENDS_THAT_OTHERS_DECIDE,
    lasting,
    position_line,
    read_position,
    replay,
)
from sparring.games.state import State

BROKEN_BY = ("black broke the rules", "white broke the rules")
ENDS = (
    *("", "resignation", "checkmate", "repetition", "declaration", "draw", "time", "interrupted"),
    *BROKEN_BY,
)
"""How a game ended; "" if the record does not say."""
ENCODINGS = {".kif": "cp932", ".kifu": "utf-8", ".csa": "utf-8", ".usi": "utf-8"}
"""What each kind of file is written in. Any of them is read in both."""
RANKS = "abcdefghi"
CSA_LINE = re.compile(r"^(V[123]|PI|P[1-9+-]|N[+-]|[+-](\d{4}[A-Z]{2})?(,|$))", re.M)
KIF_LINE = re.compile(r"^\s*(手数|手合割|[0-9]+\s+\S)", re.M)
USI_LINE = re.compile(r"^\s*(position|startpos|sfen)\b")


@dataclass(frozen=True)
class GameRecord:
    """A game as files keep it."""

    moves: tuple[str, ...] = ()
    """USI moves."""
    start: str = shogi.START
    black: str = ""
    white: str = ""
    end: str = ""
    """One of `ENDS`."""

    def __post_init__(self) -> None:
        if self.end not in ENDS:
            raise ConfigError(f"end={self.end!r} is unknown; there are: {', '.join(ENDS[1:])}")


class Line:
    """A game that is followed move by move; nothing but mate ends it, as files say how it ended."""

    def __init__(self, start: str) -> None:
        self.state = replay(lasting(Rules("shogi")), start, ())
        self.moves: list[str] = []

    @property
    def side(self) -> int:
        """Whose turn it is: 0 for Black, 1 for White."""
        return "bw".index(shogi.read_sfen(self.state).split()[1])

    def piece(self, square: str) -> str:
        """Return what stands on a square as SFEN writes it, "." if nothing does."""
        return shogi.board_of(self.state)[square]

    def play(self, move: str) -> None:
        """Play a legal USI move."""
        shogi.play(self.state, move)
        if self.state.end in ENDS_THAT_OTHERS_DECIDE:
            shogi.set_sfen(self.state, shogi.read_sfen(self.state))
        self.moves.append(move)


def moved_piece(line: Line, move: str) -> str:
    """Return what a move moves or drops, as a capital letter with + if promoted."""
    return move[0] if "*" in move else line.piece(move[:2]).upper()


def follow(record: GameRecord) -> Iterator[tuple[Line, str]]:
    """Yield each move with the game before it."""
    line = Line(record.start)
    for move in record.moves:
        yield line, move
        line.play(move)


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


def record_game(
    moves: Iterable[str],
    *,
    start: str = shogi.START,
    config: Mapping[str, Any] | None = None,
    black: str = "",
    white: str = "",
) -> GameRecord:
    """Play moves by the rules and record them with the end that the rules give."""
    state = shogi.load_sfen(start, config=config)
    played = tuple(moves)
    shogi.play(state, *played)
    return GameRecord(played, start, black, white, end_of(state))


def end_of(state: State) -> str:
    """Return how a game ended in the words of records."""
    if state.end == "perpetual check":
        return BROKEN_BY[state.scores.index(min(state.scores))]
    if state.end == "declaration":
        return "declaration" if any(state.scores) else "draw"
    words = {"no legal move": "checkmate", "ply limit": "interrupted", None: ""}
    return words.get(state.end, state.end or "")


def replay_record(record: GameRecord) -> State:
    """Return the last position of a record."""
    return replay(lasting(Rules("shogi")), record.start, record.moves)


def write_usi(record: GameRecord) -> str:
    """Return a record as a USI position: start and moves, no names, no end."""
    return position_line(record.start, record.moves) + "\n"


def read_usi(text: str) -> GameRecord:
    """Read a USI position, with or without the word `position`."""
    words = text.split()
    start, moves = read_position(words[words[:1] == ["position"] :])
    line = Line(start)
    for move in moves:
        line.play(move)
    return GameRecord(tuple(moves), start)


def read_record(text: str) -> GameRecord:
    """Read a record of any kind."""
    from sparring.games.shogi_csa import read_csa
    from sparring.games.shogi_kif import read_kif

    if USI_LINE.match(text):
        return read_usi(text)
    if CSA_LINE.search(text):
        return read_csa(text)
    if KIF_LINE.search(text):
        return read_kif(text)
    raise ConfigError("this is no record of Shogi in KIF, CSA or USI")


def load_record(path: str | Path) -> GameRecord:
    """Read a file, in UTF-8 or Shift JIS."""
    try:
        raw = Path(path).read_bytes()
    except OSError as wrong:
        raise ConfigError(f"cannot read {path}: {wrong.strerror or wrong}") from None
    for encoding in ("utf-8-sig", "cp932"):
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        try:
            return read_record(text)
        except SparringError as wrong:
            raise ConfigError(f"{path}: {wrong}") from None
    raise ConfigError(f"{path} is neither UTF-8 nor Shift JIS")


def save_record(record: GameRecord, path: str | Path) -> None:
    """Write a file of the kind that its name ends in."""
    from sparring.games.shogi_csa import write_csa
    from sparring.games.shogi_kif import write_kif

    target = Path(path)
    if target.suffix not in ENCODINGS:
        raise ConfigError(f"{target} has to end in {', '.join(ENCODINGS)}")
    write = {".csa": write_csa, ".usi": write_usi}.get(target.suffix, write_kif)
    encoding = ENCODINGS[target.suffix]
    try:
        raw = write(record).encode(encoding)
    except UnicodeEncodeError as wrong:
        letter = wrong.object[wrong.start]
        raise ConfigError(f"{letter!r} cannot be written in Shift JIS; write .kifu") from None
    target.write_bytes(raw)
