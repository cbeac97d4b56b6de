"""Pictures of games as SVG: drawings, and animated films for any browser."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import SparringError
from sparring.games.picture import (
    Arc,
    Circle,
    Drawing,
    Film,
    Point,
    Polygon,
    Polyline,
    Shape,
    ShapeGroup,
    Text,
    ViewBox,
)

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

ANIMATED_FIELDS = ("opacity", "at", "angle", "share", "points")
"""Fields of shapes that can be animated. A shape that changes otherwise becomes another one."""
TOLERANCE = {"opacity": 0.005, "at": 0.5, "angle": 0.5, "share": 0.005, "points": 1.0}
"""Allowed error of each, in pixels or degrees, which saves most key frames."""
FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',sans-serif"


def draw_svg(drawing: Drawing, width: int) -> str:
    page = SvgWriter(drawing.view, width)
    return page.document(page.element(shape) for shape in drawing.shapes)


def animate_svg(film: Film, width: int, seconds: float) -> str:
    """Return a film as a looping document; only shapes that move are animated."""
    page = SvgWriter(film.view, width)
    still = [page.element(shape) for shape in film.backdrop]
    moving = [page.animated(animated, seconds) for animated in find_animated_shapes(film)]
    return page.document([*still, *moving])


def flip_through(documents: Sequence[str], seconds: float) -> str:
    """Return documents of one size as one that shows them in a loop."""
    bodies = [document[document.find("<svg") :].strip() for document in documents]
    head = re.match(r"<svg\b[^>]*>", bodies[0])
    if head is None or not all(body.startswith("<svg") for body in bodies):
        raise SparringError("the game's picture is no SVG document; it has to begin with <svg")
    turns = np.eye(len(bodies), dtype=bool)
    groups = [
        f"<g{hidden(turn)}>{appear(turn, seconds)}{body}</g>"
        for turn, body in zip(turns, bodies, strict=True)
    ]
    return "\n".join([head[0], *groups, "</svg>\n"])


@dataclass(frozen=True)
class AnimatedShape:
    """A shape of a film, the frames in which it is visible, and its motion."""

    shape: Shape
    """As it first appears."""
    present: Bools
    """By frame."""
    moves: dict[str, Floats]
    """Values by frame of each animated field."""


def find_animated_shapes(film: Film) -> list[AnimatedShape]:
    """Return all shapes of a film, from the bottom to the top."""
    seen: dict[Any, list[tuple[int, Shape]]] = {}
    order: list[Any] = []
    for number, frame in enumerate(film.frames):
        above = 0
        for shape in frame:
            who = static_key(shape)
            if who not in seen:
                seen[who] = []
                order.insert(above, who)
            seen[who].append((number, shape))
            above = order.index(who) + 1
    return [make_animated_shape(seen[who], len(film.frames)) for who in order]


def static_key(shape: Shape) -> Any:
    """Return the fields of a shape that are not animated, which identify it."""
    fixed = [
        getattr(shape, field.name) for field in fields(shape) if field.name not in ANIMATED_FIELDS
    ]
    corners = len(shape.points) if isinstance(shape, Polygon | Polyline) else 0
    return type(shape), corners, *fixed


def make_animated_shape(found: Sequence[tuple[int, Shape]], frames: int) -> AnimatedShape:
    """Collect the motion of one shape; while it is hidden it keeps its place."""
    present = np.zeros(frames, bool)
    present[[number for number, _ in found]] = True
    latest = np.maximum(np.cumsum(present) - 1, 0)
    first = found[0][1]
    moves = {}
    for name in ANIMATED_FIELDS:
        if hasattr(first, name):
            numbers = [np.ravel(getattr(shape, name)) for _, shape in found]
            moves[name] = np.array(numbers, np.float64)[latest]
    return AnimatedShape(first, present, moves)


class SvgWriter:
    """Writes shapes as SVG elements in pixels; x is to the right, y downwards."""

    def __init__(self, view: ViewBox, width: int) -> None:
        self.view, self.width = view, width
        self.scale = width / view.width
        self.height = round(view.height * self.scale)

    def document(self, elements: Iterable[str]) -> str:
        """Return the whole file."""
        size = f'width="{self.width}" height="{self.height}"'
        box = f'viewBox="0 0 {self.width} {self.height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} font-family="{FONT}">'
        paper = f'<rect {size} fill="{self.view.paper}"/>'
        return "\n".join([head, paper, *elements, "</svg>\n"])

    def animated(self, animated: AnimatedShape, seconds: float) -> str:
        return self.element(animated.shape, hidden(animated.present), self.moves(animated, seconds))

    def element(
        self, shape: Shape, more: str = "", moves: str = "", *, inside: bool = False
    ) -> str:
        """Return the element of a shape, with extra attributes and animations.

        inside: a group, whose coordinates are relative to its center.
        """
        name, attributes, content = self.tag(shape, inside)
        if isinstance(shape, Circle | Arc | Text | ShapeGroup):
            x, y = self.pixels([shape.at], inside=inside)[0]
            turned = (
                f" rotate({short(-math.degrees(shape.angle))})"
                if isinstance(shape, ShapeGroup)
                else ""
            )
            if x or y or turned:
                attributes += f' transform="translate({short(x)},{short(y)}){turned}"'
        if shape.opacity < 1:
            attributes += f' opacity="{short(shape.opacity, 3)}"'
        head, body = f"{name} {attributes}{more}", content + moves
        return f"<{head}>{body}</{name}>" if body else f"<{head}/>"

    def tag(self, shape: Shape, inside: bool) -> tuple[str, str, str]:
        """Return name, attributes and content of a shape, without its position."""
        match shape:
            case Polygon():
                return (
                    "polygon",
                    f'points="{self.along(shape.points, inside)}" {self.paint(shape)}',
                    "",
                )
            case Circle():
                return "circle", f'r="{self.length(shape.radius)}" {self.paint(shape)}', ""
            case Arc():
                return "path", self.ring(shape), ""
            case Polyline():
                ends = ' stroke-linecap="round"' if shape.round else ""
                line = self.stroke(shape.color, shape.width)
                points = f'points="{self.along(shape.points, inside)}"'
                return "polyline", f'{points} fill="none" stroke-linejoin="round"{ends} {line}', ""
            case Text():
                size = f'font-size="{self.length(shape.size)}" dy=".35em"'
                looks = f'fill="{shape.color}" text-anchor="{shape.anchor}"'
                return "text", f"{size} {looks}", escape(shape.text)
            case ShapeGroup():
                return "g", "", "".join(self.element(part, inside=True) for part in shape.parts)
        raise TypeError(f"{type(shape).__name__} is not a shape")

    def ring(self, shape: Arc) -> str:
        """Return a part of a circle as a dash on a path that begins on top."""
        radius = shape.radius * self.scale
        half = f"a{short(radius)},{short(radius)} 0 1 1 0"
        way = f"M0,{short(-radius)}{half},{short(2 * radius)}{half},{short(-2 * radius)}"
        dash = f'pathLength="1" stroke-dasharray="{short(shape.share, 3)},1"'
        return f'd="{way}" {dash} fill="none" {self.stroke(shape.color, shape.width)}'

    def paint(self, shape: Polygon | Circle) -> str:
        """Return fill and stroke of an area."""
        fill = f'fill="{shape.fill or "none"}"'
        return f"{fill} {self.stroke(shape.edge, shape.edge_width)}" if shape.edge else fill

    def stroke(self, color: str, width: float) -> str:
        return f'stroke="{color}" stroke-width="{self.length(width)}"'

    def length(self, units: float) -> str:
        return short(units * self.scale)

    def along(self, points: Sequence[Point], inside: bool) -> str:
        return " ".join(f"{short(x)},{short(y)}" for x, y in self.pixels(points, inside=inside))

    def pixels(self, points: Any, *, inside: bool = False) -> Floats:
        """Return points [..., 2] in pixels of the page, or of a group."""
        corner = (0.0, 0.0) if inside else (self.view.left, self.view.top)
        placed: Floats = (np.asarray(points, np.float64) - corner) * (self.scale, -self.scale)
        return placed

    def moves(self, animated: AnimatedShape, seconds: float) -> str:
        """Return the animations of a shape."""
        found = [] if animated.present.all() else [appear(animated.present, seconds)]
        changing = {name for name, v in animated.moves.items() if (v != v[0]).any()}
        if (
            changing & {"at", "angle"}
            and "angle" in animated.moves
            and animated.moves["angle"].any()
        ):
            # A translation replaces the whole transform, a rotation adds to it.
            changing |= {"at", "angle"}
        for name, values in animated.moves.items():
            if name in changing:
                tag, shown, digits = self.motion(name, values)
                found.append(animate(tag, shown, seconds, TOLERANCE[name], digits))
        return "".join(found)

    def motion(self, name: str, values: Floats) -> tuple[str, Floats, int]:
        """Return the tag, values and number of digits of an animated field."""
        if name == "opacity":
            return 'animate attributeName="opacity"', values, 3
        if name == "share":
            dashes = np.column_stack([values, np.ones(len(values))])
            return 'animate attributeName="stroke-dasharray"', dashes, 3
        if name == "angle":
            turn = 'animateTransform attributeName="transform" type="rotate" additive="sum"'
            return turn, -np.degrees(values), 1
        placed = self.pixels(values.reshape(len(values), -1, 2)).reshape(len(values), -1)
        if name == "at":
            return 'animateTransform attributeName="transform" type="translate"', placed, 1
        return 'animate attributeName="points"', placed, 0


def animate(tag: str, values: Floats, seconds: float, tolerance: float, digits: int) -> str:
    """Return an animation with as few key frames as the tolerance allows."""
    whole = np.vstack([values, values[-1:]])  # the last frame lasts as long as the others
    moments = key_times(whole, tolerance)
    shown = ";".join(",".join(short(value, digits) for value in whole[at]) for at in moments)
    times = ";".join(short(at / len(values), 5) for at in moments)
    return f'<{tag} {repeat_attributes(seconds)} values="{shown}" keyTimes="{times}"/>'


def appear(present: Bools, seconds: float) -> str:
    """Return the animation that shows a shape while it is present."""
    changes = [0, *(np.flatnonzero(np.diff(present)) + 1)]
    shown = ";".join("inline" if present[at] else "none" for at in changes)
    times = ";".join(short(at / len(present), 5) for at in changes)
    tag = 'animate attributeName="display" calcMode="discrete"'
    return f'<{tag} {repeat_attributes(seconds)} values="{shown}" keyTimes="{times}"/>'


def hidden(present: Bools) -> str:
    """Return the attribute that hides a later shape in programs without animations."""
    return "" if present[0] else ' display="none"'


def repeat_attributes(seconds: float) -> str:
    return f'dur="{short(seconds, 3)}s" repeatCount="indefinite"'


def key_times(values: Floats, tolerance: float) -> list[int]:
    """Return the key frames between which linear interpolation stays within the tolerance."""
    kept = {0, len(values) - 1}
    unproven = [(0, len(values) - 1)]
    while unproven:
        first, last = unproven.pop()
        share = np.linspace(0, 1, last - first + 1)[:, None]
        line = values[first] + share * (values[last] - values[first])
        error = np.abs(values[first : last + 1] - line).max(axis=1)
        if error.max() > tolerance:
            worst = first + int(error.argmax())
            kept.add(worst)
            unproven += [(first, worst), (worst, last)]
    return sorted(kept)


def short(value: float, digits: int = 1) -> str:
    """Return a number as short text: .5 instead of 0.500."""
    text = f"{value:.{digits}f}"
    if digits:
        text = text.rstrip("0").rstrip(".")
    if text == "-0":
        return "0"
    return re.sub(r"^(-?)0\.", r"\1.", text)
