"""Where the writing of a picture is, and which pieces of it lie on each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations
from xml.etree import ElementTree

from sparring.draw.pictures.pixels import transformed
from sparring.games.picture import Shape, ShapeGroup, Text
from sparring.games.text_width import text_width

HEIGHT = 0.8
"""Of letters, in shares of their size."""
START = {"start": 0.0, "middle": 0.5, "end": 1.0}
Box = tuple[float, float, float, float, str]
"""Left, bottom, right, top, and the text."""


def texts(shapes: Iterable[Shape]) -> Iterator[Text]:
    for shape in shapes:
        if isinstance(shape, ShapeGroup):
            yield from texts(transformed(part, shape.at, shape.angle) for part in shape.parts)
        elif isinstance(shape, Text):
            yield shape


def boxes(shapes: Iterable[Shape]) -> list[Box]:
    found = []
    for text in texts(shapes):
        width, half = text_width(text.text, text.size), HEIGHT * text.size / 2
        left = text.at[0] - START[text.anchor] * width
        found.append((left, text.at[1] - half, left + width, text.at[1] + half, text.text))
    return found


def svg_boxes(document: str) -> list[Box]:
    """Return the boxes of an SVG document whose groups are at most moved and turned by 180."""
    return list(inner_boxes(ElementTree.fromstring(document), 0.0, 0.0, 1))


def inner_boxes(element: ElementTree.Element, x: float, y: float, side: int) -> Iterator[Box]:
    place = re.match(
        r"translate\(([-\d.]+),([-\d.]+)\)( rotate\(180\))?", element.get("transform", "")
    )
    if place:
        x, y, side = x + float(place[1]), y + float(place[2]), -1 if place[3] else 1
    if element.tag.endswith("}text"):
        size, words = float(element.attrib["font-size"]), element.text or ""
        width = text_width(words, size, bold=element.get("font-weight") == "bold")
        left = float(element.get("x", 0)) - START[element.get("text-anchor", "start")] * width
        low = float(element.get("y", 0))
        xs, ys = (
            sorted((x + side * left, x + side * (left + width))),
            sorted((y + side * low, y + side * (low - HEIGHT * size))),
        )
        yield xs[0], ys[0], xs[1], ys[1], words
    for part in element:
        yield from inner_boxes(part, x, y, side)


def overlaps(found: Iterable[Box]) -> list[tuple[str, str]]:
    return [
        (one[4], other[4])
        for one, other in combinations(found, 2)
        if one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    ]
