"""Score sheet of a game of Skull King: one row per round, one column per seat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sparring.games.picture import Polyline, Shape
from sparring.games.skull_king.scenes import SkullKingScene
from sparring.games.table_shapes import BAD, FAINT, GOOD, INK, SOFT, label, seat_disc

ROW, LEFT, RIGHT = 23.0, 60.0, 750.0
"""Height of a row, and where the columns of the seats begin and end."""


def sheet_height(rounds: Sequence[SkullKingScene]) -> float:
    """Return the height of a sheet: head, rounds, totals, verdict."""
    return ROW * (len(rounds) + 3) + 16


def sheet(rounds: Sequence[SkullKingScene], names: Sequence[str], verdict: str) -> Iterator[Shape]:
    """Yield the sheet, downwards from y = 0."""
    column = (RIGHT - LEFT) / len(names)
    y = -ROW
    yield Polyline(points=((10, y + 17), (RIGHT, y + 17)), color=FAINT, width=1.5)
    yield label((10, y), "round", LEFT - 14, size=15, color=SOFT)
    for seat, name in enumerate(names):
        x = LEFT + seat * column
        yield from seat_disc((x + 14, y), seat, radius=9)
        yield label((x + 27, y), name, column - 32, size=15)
    for scene in rounds:
        y -= ROW
        yield label((10, y), str(scene.at.round), LEFT - 14, size=15, color=SOFT)
        for seat in range(len(names)):
            yield from cell(scene, seat, LEFT + seat * column, y, column)
    y -= ROW
    yield Polyline(points=((10, y + 12), (RIGHT, y + 12)), color=FAINT, width=1.5)
    yield label((10, y), "total", LEFT - 14, size=15, color=SOFT)
    for seat in range(len(names)):
        total = str(rounds[-1].at.by_seat["total"][seat]) if rounds else "0"
        x = LEFT + (seat + 1) * column - 10
        yield label((x, y), total, column - 16, size=18, anchor="end")
    yield label((380, y - ROW - 2), verdict, 740, size=17, anchor="middle")


def cell(scene: SkullKingScene, seat: int, x: float, y: float, column: float) -> Iterator[Shape]:
    """Yield tricks, bid and points of a seat in a round."""
    per, points = scene.at.by_seat, scene.points[seat]
    tricks = f"{per['won'][seat]}/{per['bid'][seat]}"
    yield label((x + 6, y), tricks, column / 2 - 6, size=15, color=SOFT)
    color = GOOD if points > 0 else BAD if points < 0 else INK
    yield label((x + column - 10, y), f"{points:+}", column / 2 - 8, color=color, anchor="end")
