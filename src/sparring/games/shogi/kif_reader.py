"""Reads records of Shogi in KIF as other programs write them."""

from __future__ import annotations

import re

from sparring.errors import ConfigError, SparringError, suggestion
from sparring.games import shogi
from sparring.games.shogi.kanji import RANK_SIGNS, WIDE_DIGITS
from sparring.games.shogi.kif import (
    EVEN,
    HANDICAPS,
    OTHER_SIDE_BROKE,
    OTHER_START,
    PIECES,
    SAME,
    SIDE_NAMES,
    SIDE_TO_MOVE_BROKE,
    SIDES,
    WORD_ENDS,
)
from sparring.games.shogi.line import (
    BROKEN_BY,
    GameRecord,
    MoveLine,
    record_error,
    sfen_of,
    square_name,
)

GAP = r"[\s　]*"
KNOWN_HEADER = re.compile(r"(先手|後手|下手|上手|手合割)(の持駒)?[：:](.*)")
OTHER_HEADER = re.compile(r"[^\s：:()|+]+[：:].*")
BOARD_ROW = re.compile(r"\|(.{18})\|([一二三四五六七八九]?)")
BOARD_FRAME = re.compile(rf"[+-]+|{GAP}{GAP.join(WIDE_DIGITS[::-1])}")
MOVES_BEFORE = re.compile(r"手数＝([0-9]{1,5})(\s.*)?")
TABLE = re.compile(r"手数-+.*")
SUMMARY = re.compile(r"まで.*")
TURN = re.compile(r"(先手|後手|下手|上手)番")
NUMBERED = re.compile(r"\s*([0-9]{1,5})[\s　]+(\S.*)")
TAIL = rf"{GAP}(\([\s0-9:/.]*\))?{GAP}\+?"
"""The time, and a mark where a variation begins."""
MARKS = {"▲": 0, "☗": 0, "▼": 0, "△": 1, "☖": 1, "▽": 1}
MOVE = re.compile(
    rf"([{''.join(MARKS)}]?)({SAME}|[１-９1-9][一二三四五六七八九]){GAP}"
    rf"({'|'.join(sorted(PIECES, key=len, reverse=True))})(成|不成)?(打|\(([1-9])([1-9])\)){TAIL}"
)
END = re.compile(rf"(\S+?){TAIL}")


def read_kif(text: str) -> GameRecord:
    """Read the main line of a KIF text; remarks, times and variations are skipped."""
    reader, number = KifReader(), 0
    try:
        for number, line in enumerate(text.splitlines(), 1):  # noqa: B007  (named below)
            if line.startswith("変化"):  # the main line comes first
                break
            if line.lstrip()[:1] not in ("", "*", "#", "&"):
                reader.take(line.rstrip())
        return reader.record()
    except SparringError as error:
        raise record_error(number, reader.line, error) from None


class KifReader:
    """Reads a record line by line."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.names = ["", ""]
        self.handicap = ""
        self.rows: list[str] = []
        self.hands: list[str] = []
        self.side: int | None = None
        self.moves_before, self.first = 0, 1
        self.line: MoveLine | None = None
        self.start = ""
        self.end = ""

    def take(self, text: str) -> None:
        """Read a line by its form."""
        if numbered := NUMBERED.fullmatch(text):
            self.move(int(numbered[1]), numbered[2])
        elif header := KNOWN_HEADER.fullmatch(text):
            self.header(header[1], bool(header[2]), header[3].strip())
        elif row := BOARD_ROW.fullmatch(text):
            self.row(row[1], row[2])
        elif turn := TURN.fullmatch(text):
            self.once("whose turn it is")
            self.side = SIDES[turn[1]]
        elif before := MOVES_BEFORE.fullmatch(text):
            self.once("the number of moves")
            self.moves_before = int(before[1])
        elif not any(kind.fullmatch(text) for kind in (BOARD_FRAME, TABLE, SUMMARY, OTHER_HEADER)):
            raise ConfigError(f"{text!r} is no line of a KIF")

    def once(self, what: str) -> None:
        """Refuse a header that is repeated or follows the moves."""
        if self.line is not None:
            raise ConfigError(f"{what} has to stand before the moves")
        if what in self.seen:
            raise ConfigError(f"{what} is given twice")
        self.seen.add(what)

    def header(self, name: str, hand: bool, value: str) -> None:
        """Read a name, a hand or a handicap."""
        if name == "手合割" and not hand:
            self.once(name)
            if value not in (*HANDICAPS, OTHER_START):
                raise ConfigError(
                    f"the handicap {value!r} is unknown{suggestion(value, HANDICAPS)}"
                )
            self.handicap = value
        elif name in SIDES and not hand:
            self.once(SIDE_NAMES[SIDES[name]])
            self.names[SIDES[name]] = value
        elif name in SIDES:
            self.once(f"{SIDE_NAMES[SIDES[name]]}の持駒")
            self.hands += read_hand(value, SIDES[name])
        else:
            raise ConfigError(f"there is no header {name}の持駒")

    def row(self, cells: str, sign: str) -> None:
        """Take a row of the board, from above."""
        rank = len(self.rows)
        self.once(f"row {rank + 1} of the board")
        if rank == 9:
            raise ConfigError("the board has more than 9 rows")
        if sign not in ("", RANK_SIGNS[rank]):
            raise ConfigError(f"row {sign} of the board stands where {RANK_SIGNS[rank]} was due")
        for at in range(0, 18, 2):
            read_cell(cells[at : at + 2])
        self.rows.append(cells)

    def begin(self) -> MoveLine:
        """Set up the position where the moves begin."""
        if self.line is None:
            self.start = self.board() if self.rows else self.named_start()
            self.line = MoveLine(self.start)
        return self.line

    def named_start(self) -> str:
        """Return the start position of the handicap."""
        if self.handicap == OTHER_START or self.hands or self.moves_before:
            raise ConfigError("the board is missing from which the game begins")
        start = HANDICAPS[self.handicap or EVEN]
        if self.side not in (None, "bw".index(start.split()[1])):
            raise ConfigError(f"the other side begins with 手合割：{self.handicap or EVEN}")
        return start

    def board(self) -> str:
        """Return the position of the board."""
        if len(self.rows) != 9:
            raise ConfigError(f"the board has {len(self.rows)} rows, not 9")
        squares = {}
        for rank, row in enumerate(self.rows, 1):
            for file in range(9, 0, -1):
                at = 2 * (9 - file)
                if piece := read_cell(row[at : at + 2]):
                    squares[square_name(file, rank)] = piece
        # Kifu for Windows writes 平手 above every board that it draws.
        named = "" if self.handicap == EVEN else HANDICAPS.get(self.handicap, "")
        side = "bw".index(named.split()[1]) if named and self.side is None else self.side or 0
        start = sfen_of(squares, self.hands, side, self.moves_before + 1)
        if named and start.split()[:3] != named.split()[:3]:
            raise ConfigError(f"the board is not that of 手合割：{self.handicap}")
        return start

    def move(self, number: int, text: str) -> None:
        """Play a move, or read how the game ended."""
        line = self.begin()
        if self.end:
            raise ConfigError(f"{text!r} follows the end of the game")
        self.check_number(line, number)
        if found := MOVE.fullmatch(text):
            line.play(self.usi(line, found))
        elif (end := END.fullmatch(text)) and end[1] in WORD_ENDS:
            self.end = WORD_ENDS[end[1]]
        elif end and end[1] in (SIDE_TO_MOVE_BROKE, OTHER_SIDE_BROKE):
            self.end = BROKEN_BY[line.side ^ (end[1] == OTHER_SIDE_BROKE)]
        else:
            raise ConfigError(f"{text!r} is no move such as ７六歩(77)")

    def check_number(self, line: MoveLine, number: int) -> None:
        """Refuse a move out of order. After a board, numbers start at 1 or continue."""
        if not line.moves and number == self.moves_before + 1:
            self.first = number
        elif not line.moves:
            self.first = 1
        due = self.first + len(line.moves)
        if number != due:
            raise ConfigError(f"move {number} stands where move {due} was due")

    def usi(self, line: MoveLine, found: re.Match[str]) -> str:
        mark, place, name, promotes, how, file, rank = found.groups()[:7]
        text = found[0].split("(")[0].strip() if how == "打" else found[0].split(")")[0] + ")"
        piece = PIECES[name]
        if mark and MARKS[mark] != line.side:
            raise ConfigError(f"{text!r} is a move of the side that is not to move")
        if place == SAME and not line.moves:
            raise ConfigError(f"{text!r} follows no move")
        to = line.moves[-1][2:4] if place == SAME else read_square(place)
        if how == "打":
            if promotes or piece.startswith("+"):
                raise ConfigError(f"{text!r}: a dropped piece is not promoted")
            return f"{piece}*{to}"
        origin = square_name(int(file), int(rank))
        if line.movers_piece(origin) != piece:
            raise ConfigError(f"{text!r}: there is no {name} on {file}{rank}")
        move = f"{origin}{to}"
        if promotes == "不成" and f"{move}+" not in shogi.moves(line.state):
            raise ConfigError(f"{text!r}: this move cannot promote, so that it has no 不成")
        return f"{move}+" if promotes == "成" else move

    def record(self) -> GameRecord:
        line = self.begin()
        moves, actions = tuple(line.moves), tuple(line.actions)
        return GameRecord(moves, self.start, self.names[0], self.names[1], self.end, actions)


def read_cell(cell: str) -> str:
    """Return the piece on a square of a drawn board, "" if there is none."""
    mark, sign = cell[0], cell[1]
    if sign == "・" and mark == " ":
        return ""
    if sign not in PIECES or mark not in " vV":
        raise ConfigError(f"{cell!r} on the board is no piece")
    return PIECES[sign] if mark == " " else PIECES[sign].lower()


def read_hand(value: str, side: int) -> list[str]:
    """Return the pieces of a hand as SFEN letters."""
    pieces: list[str] = []
    for word in [] if value == "なし" else value.split():
        piece = PIECES.get(word[0], "")
        if piece not in list("PLNSGBR"):
            raise ConfigError(f"{word!r} is no piece in hand")
        pieces += [piece.lower() if side else piece] * read_number(word[1:])
    return pieces


def read_square(place: str) -> str:
    """Read a square such as ７六."""
    file = WIDE_DIGITS.find(place[0]) + 1 or int(place[0])
    return square_name(file, RANK_SIGNS.index(place[1]) + 1)


def read_number(text: str) -> int:
    """Read what `kanji_number` writes."""
    ones = text.removeprefix("十")
    tens = 10 if text.startswith("十") else 0
    if ones and (len(ones) > 1 or ones not in RANK_SIGNS):
        raise ConfigError(f"{text!r} is no count of pieces")
    return (tens + (RANK_SIGNS.index(ones) + 1 if ones else 0)) or 1
