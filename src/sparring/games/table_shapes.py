"""Shapes for pictures of table games: rounded boxes, numbered seats, labels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from sparring.games.picture import Circle, Point, Polygon, Shape, Text, fit_text

PAPER, PANEL, INK, SOFT, FAINT = "#f4f6f9", "#ffffff", "#16191f", "#5d6572", "#c3cad4"
ACTIVE, GOOD, BAD = "#d9650d", "#1d7a3c", "#b3261e"
"""Colors of the seat to act, of gains and of losses."""
SEAT_COLORS = (
    "#2563eb",
    "#b8371f",
    "#1d7a3c",
    "#7d4bb0",
    "#8a6100",
    "#0e7490",
    "#be185d",
    "#4b5563",
)
"""Colors of the seats' discs, dark enough for white numbers."""
CACHED_SHAPES = 10_000
"""Cached shapes: most shapes of a frame were in the previous one."""
CORNER = [math.radians(degrees) for degrees in (0, 30, 60, 90)]


@lru_cache(CACHED_SHAPES)
def rounded_box(
    middle: Point,
    size: tuple[float, float],
    fill: str,
    *,
    edge: str = "",
    edge_width: float = 0.0,
    radius: float = 4.0,
    key: str = "",
) -> Polygon:
    (x, y), (half_w, half_h) = middle, (size[0] / 2, size[1] / 2)
    right = [
        (half_w - radius + radius * math.cos(t), half_h - radius + radius * math.sin(t))
        for t in CORNER
    ]
    upper = [*right, *((-dx, dy) for dx, dy in reversed(right))]
    around = [*upper, *((-dx, -dy) for dx, dy in upper)]
    points = tuple((x + dx, y + dy) for dx, dy in around)
    return Polygon(points=points, fill=fill, edge=edge, edge_width=edge_width, key=key)


def oval(middle: Point, size: tuple[float, float], fill: str, edge: str, width: float) -> Polygon:
    turns = [math.radians(degrees) for degrees in range(0, 360, 4)]
    points = tuple(
        (middle[0] + size[0] / 2 * math.cos(t), middle[1] + size[1] / 2 * math.sin(t))
        for t in turns
    )
    return Polygon(points=points, fill=fill, edge=edge, edge_width=width)


def seat_disc(
    at: Point, seat: int, *, radius: float = 11.0, name: str = "", key: str = ""
) -> Iterator[Shape]:
    """Yield a seat's number on a disc of its color. name: text instead of the number."""
    yield Circle(at=at, radius=radius, fill=SEAT_COLORS[seat], key=f"{key} disc" if key else "")
    yield Text(
        at=at,
        text=name or str(seat),
        size=1.4 * radius,
        color=PANEL,
        key=f"{key} number" if key else "",
    )


@lru_cache(CACHED_SHAPES)
def label(
    at: Point,
    text: str,
    max_width: float,
    *,
    size: float = 16.0,
    color: str = INK,
    anchor: Literal["start", "middle", "end"] = "start",
    key: str = "",
) -> Text:
    """Return a line of text of at most `max_width`."""
    return fit_text(
        Text(at=at, text=text, size=size, color=color, anchor=anchor, key=key), max_width
    )
