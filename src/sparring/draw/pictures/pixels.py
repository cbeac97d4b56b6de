"""Pictures of games as raster images, drawn with Pillow."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from sparring.games.picture import (
    Arc,
    Circle,
    Drawing,
    Point,
    Polygon,
    Polyline,
    Shape,
    ShapeGroup,
    Text,
    ViewBox,
)

SUPERSAMPLING = 3
"""Images are drawn larger by this factor and reduced, which smooths edges."""
ANCHORS = {"start": "lm", "middle": "mm", "end": "rm"}


def draw_png(drawing: Drawing, width: int) -> bytes:
    canvas = Canvas(drawing.view, width)
    canvas.draw(drawing.shapes)
    data = io.BytesIO()
    canvas.finish().save(data, "PNG", optimize=True)
    return data.getvalue()


class Canvas:
    """Draws shapes onto an image; x is to the right, y downwards."""

    def __init__(self, view: ViewBox, width: int) -> None:
        self.view, self.scale = view, width * SUPERSAMPLING / view.width
        height = 2 * round(width * view.height / view.width / 2)  # films need even numbers
        self.size = (width, height)
        self.image = Image.new("RGB", (width * SUPERSAMPLING, height * SUPERSAMPLING), view.paper)

    def draw(self, shapes: Iterable[Shape]) -> None:
        for shape in shapes:
            if shape.opacity >= 1:
                self.put(shape)
                continue
            around = self.bounds(shape)
            before = self.image.crop(around)
            self.put(shape)
            mixed = Image.blend(before, self.image.crop(around), shape.opacity)
            self.image.paste(mixed, around)

    def finish(self) -> Image.Image:
        """Return the image in its final size."""
        return self.image.reduce(SUPERSAMPLING)

    def put(self, shape: Shape) -> None:
        """Draw a shape as if it were opaque."""
        pen = ImageDraw.Draw(self.image)
        match shape:
            case ShapeGroup():
                self.draw(transformed(part, shape.at, shape.angle) for part in shape.parts)
            case Polygon():
                corners = self.places(shape.points)
                pen.polygon(corners, shape.fill)
                if shape.edge:
                    self.stroke(pen, [*corners, *corners[:2]], shape.edge, shape.edge_width)
            case Polyline():
                ends = self.places(shape.points)
                self.stroke(pen, ends, shape.color, shape.width)
                if shape.round:
                    for at in (shape.points[0], shape.points[-1]):
                        pen.ellipse(self.square(at, shape.width / 2), shape.color)
            case Circle():
                pen.ellipse(self.square(shape.at, shape.radius), shape.fill or None)
                if shape.edge:
                    edge = self.square(shape.at, shape.radius + shape.edge_width / 2)
                    pen.ellipse(edge, None, shape.edge, self.pixels(shape.edge_width))
            case Arc():
                edge = self.square(shape.at, shape.radius + shape.width / 2)
                end = 360 * shape.share - 90
                pen.arc(edge, -90, end, shape.color, self.pixels(shape.width))
            case Text():
                (at,) = self.places([shape.at])
                pen.text(at, shape.text, shape.color, self.font(shape), ANCHORS[shape.anchor])

    def stroke(self, pen: Any, points: list[Point], color: str, width: float) -> None:
        """Draw a line whose corners are round."""
        pen.line(points, color, self.pixels(width), "curve")

    def pixels(self, length: float) -> int:
        return max(1, round(length * self.scale))

    def places(self, points: Iterable[Point]) -> list[Point]:
        left, top = self.view.left, self.view.top
        return [((x - left) * self.scale, (top - y) * self.scale) for x, y in points]

    def square(self, at: Point, radius: float) -> tuple[float, float, float, float]:
        """Return the square of pixels around a circle."""
        (x, y), reach = self.places([at])[0], radius * self.scale
        return x - reach, y - reach, x + reach, y + reach

    def font(self, text: Text) -> Any:
        """Return Pillow's built-in font, which is the same everywhere."""
        return load_font(self.pixels(text.size))

    def bounds(self, shape: Shape) -> tuple[int, int, int, int]:
        """Return the bounding box of a shape, in pixels."""
        corners = [self.square(place, reach) for place, reach in extent(shape)]
        if isinstance(shape, Text):
            (at,) = self.places([shape.at])
            x0, y0, x1, y1 = self.font(shape).getbbox(shape.text, anchor=ANCHORS[shape.anchor])
            corners.append((at[0] + x0, at[1] + y0, at[0] + x1, at[1] + y1))
        left, top = (math.floor(min(c[side] for c in corners)) - 2 for side in (0, 1))
        right, bottom = (math.ceil(max(c[side] for c in corners)) + 2 for side in (2, 3))
        return left, top, right, bottom


def extent(shape: Shape) -> Iterator[tuple[Point, float]]:
    """Yield discs (center, radius) that cover a shape; not for text."""
    match shape:
        case Polygon():
            yield from ((point, shape.edge_width) for point in shape.points)
        case Polyline():
            yield from ((point, shape.width) for point in shape.points)
        case Circle():
            yield shape.at, shape.radius + shape.edge_width
        case Arc():
            yield shape.at, shape.radius + shape.width
        case ShapeGroup():
            for part in shape.parts:
                yield from extent(transformed(part, shape.at, shape.angle))


def transformed(shape: Shape, by: Point, angle: float) -> Any:
    """Return a part of a group, moved and rotated with the group. Text stays upright."""
    sine, cosine = math.sin(angle), math.cos(angle)

    def place(at: Point) -> Point:
        return by[0] + cosine * at[0] - sine * at[1], by[1] + sine * at[0] + cosine * at[1]

    match shape:
        case Polygon() | Polyline():
            return replace(shape, points=tuple(map(place, shape.points)))
        case ShapeGroup():
            return replace(shape, at=place(shape.at), angle=shape.angle + angle)
        case Circle() | Arc() | Text():
            return replace(shape, at=place(shape.at))
    raise TypeError(f"{type(shape).__name__} is not a shape")


@cache
def load_font(size: int) -> Any:
    return ImageFont.load_default(size)
