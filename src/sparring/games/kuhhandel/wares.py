"""Shapes of animals and money in Kuhhandel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sparring.games.kuhhandel import KINDS, NOTES, VALUES
from sparring.games.picture import Point, Shape
from sparring.games.table_shapes import FAINT, INK, PANEL, SOFT, label, rounded_box

SHORT = ("roost", "goose", "cat", "dog", "sheep", "goat", "donk", "pig", "cow", "horse")
TILE = (43.0, 33.0)
PER_ROW = 5
HAY, MEADOW, MARK, COMPLETE = "#fff4d6", "#cfe8cf", "#9a6b00", "#1d7a3c"
BILLS = ("#e5e7eb", "#dbeafe", "#fde8c8", "#fbd5d5", "#e6dcf5", "#cdeedb")
"""Colors of the notes from 0 to 500."""
BILL = (35.0, 20.0)


def farm(counts: Sequence[int], at: Point, width: float, *, key: str) -> Iterator[Shape]:
    """Yield all kinds in two rows, with a mark per card of the seat; quartets are green."""
    across = (width - TILE[0]) / (PER_ROW - 1)
    for kind, count in enumerate(counts):
        row, column = divmod(kind, PER_ROW)
        x = at[0] + TILE[0] / 2 + column * across
        y = at[1] - TILE[1] / 2 - row * (TILE[1] + 4)
        fill = PANEL if not count else MEADOW if count == 4 else HAY
        edge = COMPLETE if count == 4 else FAINT
        tile = f"{key} {kind}"
        yield rounded_box((x, y), TILE, fill, edge=edge, edge_width=1.5, key=tile)
        color = INK if count else FAINT
        yield label(
            (x, y + 6), SHORT[kind], TILE[0] - 2, size=14, color=color, anchor="middle", key=tile
        )
        for number in range(count):
            place = (x + (number - (count - 1) / 2) * 9, y - 9)
            fill = COMPLETE if count == 4 else MARK
            yield rounded_box(place, (7, 7), fill, radius=1, key=f"{tile} {number}")


def money(pile: Sequence[int], at: Point, width: float, *, key: str) -> Iterator[Shape]:
    """Yield the notes from 500 to 0 in a row, with their counts below."""
    across = (width - BILL[0]) / (len(NOTES) - 1)
    for column, note in enumerate(reversed(range(len(NOTES)))):
        count = pile[note]
        x = at[0] + BILL[0] / 2 + column * across
        y = at[1] - BILL[1] / 2
        bill = f"{key} {note}"
        fill = BILLS[note] if count else PANEL
        yield rounded_box(
            (x, y), BILL, fill, edge=SOFT if count else FAINT, edge_width=1, radius=2, key=bill
        )
        color = INK if count else FAINT
        value = str(NOTES[note])
        yield label((x, y), value, BILL[0] - 2, size=15, color=color, anchor="middle", key=bill)
        if count:
            yield label((x, y - 19), f"x{count}", 34, size=15, anchor="middle", key=f"{bill} count")


def animal_card(kind: int, count: int, at: Point) -> Iterator[Shape]:
    """Yield one or two large cards with the animal and the points of its quartet."""
    x, y = at
    for behind in range(count - 1, -1, -1):
        place = (x + 8 * behind, y + 8 * behind)
        yield rounded_box(
            place, (104, 116), HAY, edge=MARK, edge_width=2, radius=8, key=f"card {behind}"
        )
    if count > 1:
        yield label((x, y + 44), f"{count} x", 96, anchor="middle", key="stake")
    yield label((x, y + 20), KINDS[kind], 96, size=22, anchor="middle", key="animal")
    yield label((x, y - 14), str(VALUES[kind]), 96, size=26, anchor="middle", key="value")
    yield label((x, y - 40), "the quartet", 96, size=14, color=SOFT, anchor="middle", key="four")
