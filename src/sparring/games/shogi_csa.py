"""Records of Shogi in CSA, the format of computer matches (version 2.2)."""

from __future__ import annotations

import re

from sparring.errors import ConfigError, SparringError, nearest
from sparring.games import shogi
from sparring.games.shogi_records import (
    BROKEN_BY,
    GameRecord,
    Line,
    follow,
    moved_piece,
    sfen_of,
    square_name,
    square_numbers,
)

CODES = {
    **{"P": "FU", "L": "KY", "N": "KE", "S": "GI", "G": "KI", "B": "KA", "R": "HI", "K": "OU"},
    **{"+P": "TO", "+L": "NY", "+N": "NK", "+S": "NG", "+B": "UM", "+R": "RY"},
}
PIECES = {code: piece for piece, code in CODES.items()}
SIDES = "+-"
END_WORDS = {
    "resignation": "%TORYO",
    "checkmate": "%TSUMI",
    "repetition": "%SENNICHITE",
    "declaration": "%KACHI",
    "draw": "%HIKIWAKE",
    "time": "%TIME_UP",
    "interrupted": "%CHUDAN",
    BROKEN_BY[0]: "%+ILLEGAL_ACTION",
    BROKEN_BY[1]: "%-ILLEGAL_ACTION",
}
WORD_ENDS = {word: end for end, word in END_WORDS.items()}
WORD_ENDS |= {"%JISHOGI": "draw", "%MAX_MOVES": "interrupted"}
MOVE = re.compile(r"([+-])(\d)(\d)([1-9])([1-9])([A-Z]{2})")
PLACED = re.compile(r"(\d)(\d)([A-Z]{2})")


def write_csa(record: GameRecord) -> str:
    """Return a record as CSA. The move number of a start position is not kept."""
    lines = ["V2.2"]
    lines += [f"N{SIDES[0]}{record.black}"] if record.black else []
    lines += [f"N{SIDES[1]}{record.white}"] if record.white else []
    lines += ["PI"] if record.start == shogi.START else board_lines(record.start)
    lines.append(SIDES["bw".index(record.start.split()[1])])
    for line, move in follow(record):
        lines.append(csa_move(line, move))
    if record.end:
        lines.append(END_WORDS[record.end])
    return "\n".join(lines) + "\n"


def csa_move(line: Line, move: str) -> str:
    """Return a move with the piece that it becomes."""
    piece = moved_piece(line, move)
    if "*" in move:
        origin, to = "00", move[2:4]
    else:
        origin, to = "".join(map(str, square_numbers(move[:2]))), move[2:4]
    became = f"+{piece}" if move.endswith("+") else piece
    return f"{SIDES[line.side]}{origin}{''.join(map(str, square_numbers(to)))}{CODES[became]}"


def board_lines(start: str) -> list[str]:
    """Return a position rank by rank, then the hands."""
    board, _, hands, _ = start.split()
    lines = []
    for number, row in enumerate(board.split("/"), 1):
        lines.append(f"P{number}{''.join(csa_cell(cell) for cell in shogi.cells(row))}")
    for sign, mine in zip(SIDES, (str.isupper, str.islower), strict=True):
        held = shogi.hands_of(hands, mine)
        pieces = [] if held == "nothing" else held.split()
        shown = "".join(f"00{CODES[p[-1]]}" * int(p[:-1] or 1) for p in pieces)
        lines += [f"P{sign}{shown}"] if shown else []
    return lines


def csa_cell(cell: str) -> str:
    """Return a square, three columns wide."""
    return " * " if cell == "." else f"{SIDES[cell[-1].islower()]}{CODES[cell.upper()]}"


def read_csa(text: str) -> GameRecord:
    """Read the first game of a CSA text; remarks and times are skipped."""
    reader = Reader()
    for number, whole in enumerate(text.splitlines(), 1):
        if whole.strip() == "/":  # another game follows
            break
        if not whole.strip() or whole[0] in "'$VT":
            continue
        statements = [whole] if whole[0] in "NP" else whole.split(",")
        for statement in statements:
            try:
                reader.take(statement.rstrip())
            except SparringError as wrong:
                raise ConfigError(f"line {number}: {wrong}") from None
    return reader.record()


class Reader:
    """Takes one statement after the other."""

    def __init__(self) -> None:
        self.names = {"+": "", "-": ""}
        self.squares: dict[str, str] = {}
        self.hands: list[str] = []
        self.start = ""
        self.line: Line | None = None
        self.end = ""

    def take(self, statement: str) -> None:
        """Read a statement by its first letter."""
        if statement[:2] in ("N+", "N-"):
            self.names[statement[1]] = statement[2:].strip()
        elif statement.startswith("P"):
            self.place(statement)
        elif statement in ("+", "-"):
            self.start = sfen_of(self.squares, self.hands, SIDES.index(statement))
            self.line = Line(self.start)
        elif statement.startswith("%"):
            self.finish(statement)
        elif statement[:1] in SIDES and statement:
            self.move(statement)
        elif not statement.startswith("T"):
            raise ConfigError(f"{statement!r} is no statement of CSA")

    def place(self, statement: str) -> None:
        """Read a part of the start position."""
        kind, rest = statement[1:2], statement[2:]
        if kind == "I":
            rows = shogi.START.split()[0].split("/")
            for rank, row in enumerate(rows, 1):
                self.place_row(rank, shogi.cells(row))
            for file, rank, _ in PLACED.findall(rest):
                self.squares.pop(square_name(int(file), int(rank)), None)
        elif kind.isdecimal() and kind != "0":
            cells = [rest[at : at + 3] for at in range(0, 27, 3)]
            self.place_row(int(kind), [sfen_cell(cell) for cell in cells])
        elif kind and kind in SIDES:
            self.place_single(SIDES.index(kind), rest)
        else:
            raise ConfigError(f"{statement!r} is no part of a position")

    def place_row(self, rank: int, cells: list[str]) -> None:
        """Put down a rank, from file 9."""
        for file, cell in zip(range(9, 0, -1), cells, strict=True):
            if cell != ".":
                self.squares[square_name(file, rank)] = cell

    def place_single(self, side: int, rest: str) -> None:
        """Put down single pieces, on the board or in a hand (00)."""
        if PLACED.sub("", rest):
            raise ConfigError(f"{rest!r} is no list of pieces such as 00FU55KA")
        for file, rank, code in PLACED.findall(rest):
            piece = piece_of(code)
            mine = piece.lower() if side else piece
            if (file, rank) == ("0", "0"):
                if piece not in list("PLNSGBR"):
                    raise ConfigError(f"{code} cannot be in hand")
                self.hands.append(mine)
            elif "0" in (file, rank):
                raise ConfigError(f"there is no square {file}{rank}")
            else:
                self.squares[square_name(int(file), int(rank))] = mine

    def move(self, statement: str) -> None:
        """Play a move."""
        if self.line is None:
            raise ConfigError("a move before the line + or - that says who begins")
        found = MOVE.fullmatch(statement)
        if found is None:
            raise ConfigError(f"{statement!r} is no move such as +7776FU")
        side, *numbers, code = found.groups()
        if SIDES.index(side) != self.line.side:
            raise ConfigError(f"{statement} is a move of the side that is not to move")
        file, rank, to_file, to_rank = map(int, numbers)
        self.line.play(self.usi(file, rank, square_name(to_file, to_rank), piece_of(code)))

    def usi(self, file: int, rank: int, to: str, became: str) -> str:
        """Return a move as USI: it promotes if the piece was another before."""
        assert self.line
        if (file, rank) == (0, 0):
            return f"{became}*{to}"
        if 0 in (file, rank):
            raise ConfigError(f"there is no square {file}{rank}")
        origin = square_name(file, rank)
        was = self.line.piece(origin).upper()
        if became not in (was, f"+{was}"):
            raise ConfigError(f"no {CODES[became]} can come from {file}{rank}")
        return f"{origin}{to}{'+' if became != was else ''}"

    def finish(self, word: str) -> None:
        """Read how the game ended."""
        if word == "%ILLEGAL_MOVE" and self.line:
            self.end = BROKEN_BY[self.line.side]
            return
        if word not in WORD_ENDS:
            raise ConfigError(f"{word!r} is no end of a game{nearest(word, WORD_ENDS)}")
        self.end = WORD_ENDS[word]

    def record(self) -> GameRecord:
        """Return what was read."""
        if self.line is None:
            raise ConfigError("the record does not say who begins; a line + or - is missing")
        names = self.names
        return GameRecord(tuple(self.line.moves), self.start, names["+"], names["-"], self.end)


def sfen_cell(cell: str) -> str:
    """Return a square as SFEN writes it."""
    if not cell.strip(" *"):
        return "."
    if cell[0] not in SIDES:
        raise ConfigError(f"{cell!r} is no square such as +FU")
    piece = piece_of(cell[1:])
    return piece if cell[0] == SIDES[0] else piece.lower()


def piece_of(code: str) -> str:
    """Return the piece of a code."""
    if code not in PIECES:
        raise ConfigError(f"{code!r} is no piece{nearest(code, PIECES)}")
    return PIECES[code]
