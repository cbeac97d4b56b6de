"""The Shogi board as text with kanji."""

from __future__ import annotations

from sparring.games.shogi import cells, hands_of, headline, read_sfen
from sparring.games.state import State

KANJI = {
    **{"P": "歩", "L": "香", "N": "桂", "S": "銀", "G": "金", "B": "角", "R": "飛", "K": "玉"},
    **{"+P": "と", "+L": "杏", "+N": "圭", "+S": "全", "+B": "馬", "+R": "龍"},
}
"""One character per piece."""
WIDE_DIGITS = "１２３４５６７８９"
RANK_SIGNS = "一二三四五六七八九"
BLACK, WHITE = "☗", "☖"


def kanji_text(state: State) -> str:
    """Show the board with kanji as Black sees it; v marks the pieces of White."""
    board, _, hands, _ = read_sfen(state).split()
    edge = "+" + "-" * 27 + "+"
    lines = [headline(state), held(WHITE, hands), " " + "".join(f" {d}" for d in WIDE_DIGITS[::-1])]
    lines.append(edge)
    for sign, row in zip(RANK_SIGNS, board.split("/"), strict=True):
        lines.append(f"|{''.join(kanji_cell(cell) for cell in cells(row))}|{sign}")
    return "\n".join([*lines, edge, held(BLACK, hands)])


def kanji_cell(cell: str) -> str:
    """Return a square, three columns wide."""
    if cell == ".":
        return " ・"
    return f"{' ' if cell[-1].isupper() else 'v'}{KANJI[cell.upper()]}"


def held(side: str, hands: str) -> str:
    pieces = hands_of(hands, str.isupper if side == BLACK else str.islower).split()
    if pieces == ["nothing"]:
        return f"{side} なし"
    return f"{side} {' '.join(KANJI[piece[-1]] + piece[:-1] for piece in pieces)}"
