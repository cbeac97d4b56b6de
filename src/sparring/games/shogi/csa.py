"""Records of Shogi in CSA, the format of computer matches (version 2.2)."""

from __future__ import annotations

import re

from sparring.errors import ConfigError, SparringError, suggestion
from sparring.games import shogi
from sparring.games.shogi.line import (
    BROKEN_BY,
    GameRecord,
    MoveLine,
    follow,
    moved_piece,
    record_error,
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
MOVE = re.compile(r"([+-])([0-9])([0-9])([1-9])([1-9])([A-Z]{2})")
PLACED = re.compile(r"([0-9])([0-9])([A-Z]{2})")
REMARK = re.compile(r"'.*|\$[A-Z_0-9]+:.*|V[0-9.]+")
TIME = re.compile(r"T[0-9]+(\.[0-9]+)?")
EMPTY = " * "
WIDTH = 9 * len(EMPTY)
UNSPLIT = "'$N"
"""First characters of lines in which a comma does not separate statements."""


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


def csa_move(line: MoveLine, move: str) -> str:
    """Return a move as CSA: origin, target, and the piece after the move."""
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
    return EMPTY if cell == "." else f"{SIDES[cell[-1].islower()]}{CODES[cell.upper()]}"


def read_csa(text: str, before: int = 0) -> GameRecord:
    """Read the first game of a CSA text; remarks and times are skipped.

    before: lines of the file above the text, for errors.
    """
    reader, number = CsaReader(), before
    try:
        for number, whole in enumerate(text.splitlines(), before + 1):  # noqa: B007  (named below)
            if whole.strip() == "/":  # another game follows
                break
            for statement in [whole] if whole[:1] in UNSPLIT else whole.split(","):
                reader.take(statement.rstrip())
        return reader.record()
    except SparringError as error:
        raise record_error(number, reader.line, error) from None


class CsaReader:
    """Reads a record statement by statement."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.ranks: set[int] = set()
        self.squares: dict[str, str] = {}
        self.hands: list[str] = []
        self.start = ""
        self.line: MoveLine | None = None
        self.end = ""

    def take(self, statement: str) -> None:
        """Read a statement by its first letter."""
        if not statement or REMARK.fullmatch(statement):
            return
        if TIME.fullmatch(statement):
            if self.line is None or not (self.line.moves or self.end):
                raise ConfigError(f"the time {statement} follows no move")
        elif statement[:2] in ("N+", "N-") or statement.startswith("P"):
            self.head(statement)
        elif statement in ("+", "-"):
            self.begin(statement)
        elif statement.startswith("%"):
            self.finish(statement)
        elif statement[0] in SIDES:
            self.move(statement)
        else:
            raise ConfigError(f"{statement!r} is no statement of CSA")

    def head(self, statement: str) -> None:
        """Read a name or a part of the position."""
        if self.line is not None:
            raise ConfigError(
                f"{statement!r} must come before the line + or - that names the side to begin"
            )
        if statement.startswith("P"):
            self.place(statement)
            return
        if statement[1] in self.names:
            raise ConfigError(f"the name {statement[:2]} is given twice")
        self.names[statement[1]] = statement[2:].strip()

    def begin(self, statement: str) -> None:
        """Set up the position where the moves begin."""
        if self.line is not None:
            raise ConfigError("a second line + or - that names the side to begin")
        self.start = sfen_of(self.squares, self.hands, SIDES.index(statement))
        self.line = MoveLine(self.start)

    def place(self, statement: str) -> None:
        """Read a part of the start position."""
        kind, rest = statement[1:2], statement[2:]
        if kind == "I":
            for rank, row in enumerate(shogi.START.split()[0].split("/"), 1):
                self.place_row(rank, shogi.cells(row))
            self.take_away(rest)
        elif kind and kind in "123456789":
            padded = rest.ljust(WIDTH) if len(rest) == WIDTH - 1 else rest  # "*" was the last
            if len(padded) != WIDTH:
                raise ConfigError(f"rank {kind} needs nine squares of three signs: {rest!r}")
            cells = [padded[at : at + 3] for at in range(0, WIDTH, 3)]
            self.place_row(int(kind), [sfen_cell(cell) for cell in cells])
        elif kind and kind in SIDES:
            self.place_single(SIDES.index(kind), rest)
        else:
            raise ConfigError(f"{statement!r} is no part of a position")

    def place_row(self, rank: int, cells: list[str]) -> None:
        """Put down a rank, from file 9."""
        if rank in self.ranks:
            raise ConfigError(f"rank {rank} is given twice")
        self.ranks.add(rank)
        for file, cell in zip(range(9, 0, -1), cells, strict=True):
            if cell != ".":
                self.put(square_name(file, rank), cell)

    def put(self, square: str, piece: str) -> None:
        """Put down a piece where none stands."""
        if square in self.squares:
            file, rank = square_numbers(square)
            raise ConfigError(f"two pieces stand on {file}{rank}")
        self.squares[square] = piece

    def take_away(self, rest: str) -> None:
        """Remove the pieces of a handicap."""
        for file, rank, code in listed(rest):
            if "0" in (file, rank):
                raise ConfigError(f"there is no square {file}{rank}")
            square = square_name(int(file), int(rank))
            if self.squares.get(square, "").upper() != piece_of(code):
                raise ConfigError(f"there is no {code} on {file}{rank} to take away")
            del self.squares[square]

    def place_single(self, side: int, rest: str) -> None:
        """Put down single pieces, on the board or in a hand (00)."""
        for file, rank, code in listed(rest):
            piece = piece_of(code)
            mine = piece.lower() if side else piece
            if (file, rank) == ("0", "0"):
                if piece not in list("PLNSGBR"):
                    raise ConfigError(f"{code} cannot be in hand")
                self.hands.append(mine)
            elif "0" in (file, rank):
                raise ConfigError(f"there is no square {file}{rank}")
            else:
                self.put(square_name(int(file), int(rank)), mine)

    def move(self, statement: str) -> None:
        if self.line is None:
            raise ConfigError("a move before the line + or - that names the side to begin")
        if self.end:
            raise ConfigError(f"{statement} follows the end of the game")
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
            if became not in list("PLNSGBR"):
                raise ConfigError(f"no {CODES[became]} can be dropped")
            return f"{became}*{to}"
        if 0 in (file, rank):
            raise ConfigError(f"there is no square {file}{rank}")
        origin = square_name(file, rank)
        was = self.line.movers_piece(origin)
        if not was or became not in (was, f"+{was}"):
            raise ConfigError(f"no {CODES[became]} can come from {file}{rank}")
        return f"{origin}{to}{'+' if became != was else ''}"

    def finish(self, word: str) -> None:
        if self.line is None:
            raise ConfigError("an end before the line + or - that names the side to begin")
        if self.end:
            raise ConfigError(f"{word} follows the end of the game")
        if word == "%ILLEGAL_MOVE":
            self.end = BROKEN_BY[self.line.side]
            return
        if word not in WORD_ENDS:
            raise ConfigError(f"{word!r} is no end of a game{suggestion(word, WORD_ENDS)}")
        self.end = WORD_ENDS[word]

    def record(self) -> GameRecord:
        if self.line is None:
            raise ConfigError("the line + or - that names the side to begin is missing")
        black, white = (self.names.get(sign, "") for sign in SIDES)
        moves, actions = tuple(self.line.moves), tuple(self.line.actions)
        return GameRecord(moves, self.start, black, white, self.end, actions)


def listed(rest: str) -> list[tuple[str, str, str]]:
    """Return file, rank and code of single pieces."""
    if PLACED.sub("", rest):
        raise ConfigError(f"{rest!r} is no list of pieces such as 00FU55KA")
    return PLACED.findall(rest)


def sfen_cell(cell: str) -> str:
    """Return a square as SFEN writes it."""
    if cell == EMPTY:
        return "."
    if cell[0] not in SIDES:
        raise ConfigError(f"{cell!r} is no square such as +FU")
    piece = piece_of(cell[1:])
    return piece if cell[0] == SIDES[0] else piece.lower()


def piece_of(code: str) -> str:
    if code not in PIECES:
        raise ConfigError(f"{code!r} is no piece{suggestion(code, PIECES)}")
    return PIECES[code]
