"""Shapes of Skull King cards: a color, letters, and on large cards a symbol of the kind."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from sparring.games.picture import Circle, Point, Polygon, Polyline, Shape, ShapeGroup, Shapes, Text
from sparring.games.skull_king import (
    card_short_name,
    token_short_name,
)
from sparring.games.table_shapes import INK, rounded_box

WHITE, GOLD, EDGE = "#ffffff", "#f2a900", "#8a93a0"
FILLS = {
    "B": "#23272e",
    "G": "#1f7d45",
    "P": "#7540ad",
    "Y": "#f5c832",
    "Pi": "#b3261e",
    "SK": "#6d0f0a",
    "M": "#b9e3ee",
    "T": "#f0a35e",
    "E": "#ffffff",
    "L": "#e7d3ae",
    "KR": "#1c3f73",
    "WW": "#d5deea",
}
DARK = ("B", "G", "P", "Pi", "SK", "KR")
"""Kinds whose letters are white."""
HAND_CARD, TABLE_CARD = (34.0, 27.0), (48.0, 64.0)
SIGN_Y = 13.0
"""Height of a symbol's center above the card's center."""
AREAS: dict[str, tuple[tuple[Point, ...], ...]] = {
    "G": (((-9, -7), (9, -7), (0, 9)),),
    "P": (((0, -10), (9, 0), (0, 10), (-9, 0)),),
    "Y": (((-7, -7), (7, -7), (7, 7), (-7, 7)),),
    "SK": (((-12, -7), (12, -7), (13, 8), (6, 0), (0, 9), (-6, 0), (-13, 8)),),
    "E": (((-8, 9), (10, 5), (-8, 0)),),
}
STROKES: dict[str, tuple[tuple[Point, ...], ...]] = {
    "Pi": (((-9, -8), (9, 8)), ((9, -8), (-9, 8))),
    "M": tuple(((-12, y), (-6, y + 5), (0, y), (6, y + 5), (12, y)) for y in (-6, 3)),
    "T": tuple(((x - 3, -8), (x + 3, 8)) for x in (-8, 0, 8)),
    "E": (((-8, -9), (-8, 9)),),
}
RINGS = {"L": ((-7, 5), (7, 5)), "KR": ((0, 9), (0, 4)), "WW": ((0, 9),)}
"""(x, radius) of circles: coins, an eye, a mouth."""
LEGEND = (
    "B black (trump), G green, P purple, Y yellow; M mermaid, Pi pirate, SK Skull King",
    "T Tigress (TP as pirate, TE as escape), E escape, L loot, KR Kraken, WW White Whale",
)


def kind_of(name: str) -> str:
    """Return the letters of a card's kind."""
    return "T" if name in ("TP", "TE") else name.rstrip("0123456789")


def hand_card(card: int, at: Point) -> ShapeGroup:
    return ShapeGroup(parts=small_face(card), at=at, key=f"hand {card}")


@cache
def small_face(card: int) -> Shapes:
    name = card_short_name(card)
    kind = kind_of(name)
    ink = WHITE if kind in DARK else INK
    face = rounded_box((0, 0), HAND_CARD, FILLS[kind], edge=EDGE, edge_width=1)
    return face, Text(at=(0, 0), text=name, size=16, color=ink)


def table_card(token: int, at: Point, *, wins: bool) -> ShapeGroup:
    """Return a card of the trick; the winning card has a golden edge."""
    return ShapeGroup(parts=large_face(token, wins), at=at, key=f"table {token}")


@cache
def large_face(token: int, wins: bool) -> Shapes:
    name = token_short_name(token)
    kind = kind_of(name)
    ink = WHITE if kind in DARK else INK
    edge, width = (GOLD, 6.0) if wins else (EDGE, 1.5)
    face = rounded_box((0, 0), TABLE_CARD, FILLS[kind], edge=edge, edge_width=width, radius=6)
    return face, *sign(kind, ink), Text(at=(0, -14), text=name, size=21, color=ink)


def sign(kind: str, ink: str) -> Iterator[Shape]:
    """Yield the symbol of a kind, in the upper half of a card."""
    for area in AREAS.get(kind, ()):
        yield Polygon(points=lifted(area), fill=ink)
    for stroke in STROKES.get(kind, ()):
        yield Polyline(points=lifted(stroke), color=ink, width=3.5, round=True)
    for x, radius in RINGS.get(kind, ()):
        yield Circle(at=(x, SIGN_Y), radius=radius, edge=ink, edge_width=3)
    if kind == "B":
        yield Circle(at=(0, SIGN_Y), radius=8, fill=ink)


def lifted(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Return the points of a symbol, moved to its place on the card."""
    return tuple((x, y + SIGN_Y) for x, y in points)
