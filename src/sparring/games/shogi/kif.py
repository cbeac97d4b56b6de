"""Writes records of Shogi in KIF, the format of most Japanese programs and servers."""

from __future__ import annotations

from sparring.games import shogi
from sparring.games.shogi.kanji import KANJI, RANK_SIGNS, WIDE_DIGITS, kanji_cell
from sparring.games.shogi.line import (
    BROKEN_BY,
    GameRecord,
    MoveLine,
    follow,
    moved_piece,
    next_side,
    square_numbers,
)

FULL_CAMP = "/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"
EVEN, OTHER_START = "平手", "その他"
HANDICAPS = {
    EVEN: shogi.START,
    "香落ち": f"lnsgkgsn1/1r5b1{FULL_CAMP}",
    "右香落ち": f"1nsgkgsnl/1r5b1{FULL_CAMP}",
    "角落ち": f"lnsgkgsnl/1r7{FULL_CAMP}",
    "飛車落ち": f"lnsgkgsnl/7b1{FULL_CAMP}",
    "飛香落ち": f"lnsgkgsn1/7b1{FULL_CAMP}",
    "二枚落ち": f"lnsgkgsnl/9{FULL_CAMP}",
    "四枚落ち": f"1nsgkgsn1/9{FULL_CAMP}",
    "六枚落ち": f"2sgkgs2/9{FULL_CAMP}",
    "八枚落ち": f"3gkg3/9{FULL_CAMP}",
}
"""Named start positions; with a handicap White begins."""
MOVE_NAMES = {**KANJI, "+L": "成香", "+N": "成桂", "+S": "成銀"}
"""Names of pieces in moves; boards have one character for each."""
PIECES = {name: piece for names in (KANJI, MOVE_NAMES) for piece, name in names.items()}
PIECES |= {"王": "K", "竜": "+R"}
END_WORDS = {
    **{"resignation": "投了", "checkmate": "詰み", "repetition": "千日手"},
    **{"declaration": "入玉勝ち", "draw": "持将棋", "time": "切れ負け", "interrupted": "中断"},
}
WORD_ENDS = {word: end for end, word in END_WORDS.items()} | {"詰": "checkmate"}
SIDE_TO_MOVE_BROKE, OTHER_SIDE_BROKE = "反則負け", "反則勝ち"
SIDE_NAMES = ("先手", "後手")
SIDES = {"先手": 0, "下手": 0, "後手": 1, "上手": 1}
TABLE_HEAD = "手数----指手---------消費時間--"
SAME = "同"


def write_kif(record: GameRecord) -> str:
    lines = start_lines(record.start)
    for name, player in zip(SIDE_NAMES, (record.black, record.white), strict=True):
        lines += [f"{name}：{player}"] if player else []
    lines.append(TABLE_HEAD)
    before = ""
    for line, move in follow(record):
        lines.append(f"{len(line.moves) + 1:4} {kif_move(line, move, before)}")
        before = move[2:4]
    if record.end:
        lines.append(f"{len(record.moves) + 1:4} {end_word(record)}")
    return "\n".join(lines) + "\n"


def start_lines(start: str) -> list[str]:
    """Return a start position by its name, or as a board."""
    for name, sfen in HANDICAPS.items():
        if sfen == start:
            return [f"手合割：{name}"]
    board, side, hands, number = start.split()
    edge = "+" + "-" * 27 + "+"
    rows = [
        f"|{''.join(kanji_cell(cell) for cell in shogi.cells(row))}|{sign}"
        for sign, row in zip(RANK_SIGNS, board.split("/"), strict=True)
    ]
    lines = [
        f"{SIDE_NAMES[1]}の持駒：{kif_hand(shogi.hands_of(hands, str.islower))}",
        " " + "".join(f" {digit}" for digit in WIDE_DIGITS[::-1]),
        *(edge, *rows, edge),
        f"{SIDE_NAMES[0]}の持駒：{kif_hand(shogi.hands_of(hands, str.isupper))}",
    ]
    lines += [f"{SIDE_NAMES[1]}番"] if side == "w" else []
    return [*lines, f"手数＝{int(number) - 1}"] if number != "1" else lines


def kif_hand(held: str) -> str:
    """Return a hand with counts in kanji."""
    if held == "nothing":
        return "なし"
    return "　".join(f"{KANJI[p[-1]]}{kanji_number(int(p[:-1] or 1))}" for p in held.split())


def kanji_number(number: int) -> str:
    """Return a count up to 19 as hands show it; 1 is not shown."""
    if number == 1:
        return ""
    ten = "十" if number >= 10 else ""
    return ten + (RANK_SIGNS[number % 10 - 1] if number % 10 else "")


def kif_move(line: MoveLine, move: str, before: str) -> str:
    """Return a move as KIF; a repeated target square is written 同."""
    to = move[2:4]
    file, rank = square_numbers(to)
    place = f"{SAME}　" if to == before else f"{WIDE_DIGITS[file - 1]}{RANK_SIGNS[rank - 1]}"
    named = f"{place}{MOVE_NAMES[moved_piece(line, move)]}"
    if "*" in move:
        return f"{named}打"
    from_file, from_rank = square_numbers(move[:2])
    return f"{named}{'成' if move.endswith('+') else ''}({from_file}{from_rank})"


def end_word(record: GameRecord) -> str:
    """Return the end of a game; rule violations are relative to the side to move."""
    if record.end in BROKEN_BY:
        mine = BROKEN_BY.index(record.end) == next_side(record)
        return SIDE_TO_MOVE_BROKE if mine else OTHER_SIDE_BROKE
    return END_WORDS[record.end]
