"""The Shogi board as SVG."""

from __future__ import annotations

from html import escape

from sparring.games.picture import SvgPicture
from sparring.games.shogi import cells, hands_of, headline, read_sfen
from sparring.games.shogi.kanji import BLACK, KANJI, WHITE
from sparring.games.state import State

CELL, PIECE = 50, 22
"""Width of a square, and half the height of a piece, in pixels."""
LEFT, TOP = 90, 62
BOARD = 9 * CELL
WIDTH, HEIGHT = 2 * LEFT + BOARD, TOP + BOARD + 34
INK, RED, WOOD, PIECE_FILL, PAPER = "#1d2420", "#b3261e", "#eccb87", "#f8e6bd", "#ffffff"
STAR_POINTS = ((3, 3), (3, 6), (6, 3), (6, 6))
STYLE = "font-family: 'Noto Sans CJK JP', 'Hiragino Sans', 'Yu Gothic', sans-serif"


def board_svg(state: State) -> str:
    """Return a drawing of the board and the hands, Black below."""
    board, _, hands, _ = read_sfen(state).split()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" style="{STYLE}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>',
        text(LEFT, 26, headline(state), size=16, anchor="start"),
        *grid(),
    ]
    for rank, row in enumerate(board.split("/")):
        for column, cell in enumerate(cells(row)):
            if cell != ".":
                parts.append(piece(cell, *center(column, rank)))
    parts += hand(hands_of(hands, str.isupper), BLACK)
    parts += hand(hands_of(hands, str.islower), WHITE)
    return "\n".join([*parts, "</svg>"])


def center(column: int, rank: int) -> tuple[float, float]:
    """Return the middle of a square; column 0 is file 9."""
    return LEFT + (column + 0.5) * CELL, TOP + (rank + 0.5) * CELL


def grid() -> list[str]:
    """Draw the empty board with its numbers."""
    parts = [
        f'<rect x="{LEFT}" y="{TOP}" width="{BOARD}" height="{BOARD}" fill="{WOOD}" '
        f'stroke="{INK}" stroke-width="2"/>'
    ]
    ticks = range(CELL, BOARD, CELL)
    lines = [f"M{LEFT + at},{TOP} v{BOARD}" for at in ticks]
    lines += [f"M{LEFT},{TOP + at} h{BOARD}" for at in ticks]
    parts.append(f'<path d="{" ".join(lines)}" stroke="{INK}" fill="none"/>')
    for column, rank in STAR_POINTS:
        at_point = f'cx="{LEFT + column * CELL}" cy="{TOP + rank * CELL}"'
        parts.append(f'<circle {at_point} r="3" fill="{INK}"/>')
    for at in range(9):
        x, y = center(at, at)
        parts.append(text(x, TOP - 10, str(9 - at), size=13))
        parts.append(text(LEFT + BOARD + 12, y + 5, "abcdefghi"[at], size=13))
    return parts


def piece(cell: str, x: float, y: float) -> str:
    """Draw a piece; White's point down, promoted ones are red."""
    turn = "" if cell[-1].isupper() else " rotate(180)"
    color = RED if cell.startswith("+") else INK
    corners = ((0, -1), (0.62, -0.72), (0.84, 1), (-0.84, 1), (-0.62, -0.72))
    points = " ".join(f"{PIECE * dx:g},{PIECE * dy:g}" for dx, dy in corners)
    return (
        f'<g transform="translate({x:g},{y:g}){turn}">'
        f'<polygon points="{points}" fill="{PIECE_FILL}" stroke="{INK}"/>'
        f"{text(0, 10, KANJI[cell.upper()], size=25, color=color)}</g>"
    )


def hand(pieces: str, side: str) -> list[str]:
    """Draw what a side holds: Black's at the lower right, White's at the upper left."""
    black = side == BLACK
    x = LEFT + BOARD + 48 if black else 36
    y, step = (TOP + BOARD - 24, -CELL) if black else (TOP + 24, CELL)
    parts = []
    for number, held_piece in enumerate([] if pieces == "nothing" else pieces.split()):
        letter, count = held_piece[-1], held_piece[:-1]
        at = y + number * step
        parts.append(piece(letter if black else letter.lower(), x, at))
        if count:
            parts.append(text(x + 30, at + 6, count, size=14))
    mark = TOP + BOARD + 24 if black else TOP - 10
    return [*parts, text(x, mark, side, size=18)]


def text(
    x: float, y: float, words: str, *, size: int, color: str = INK, anchor: str = "middle"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


PICTURE = SvgPicture(board_svg, frame_s=1.0)
