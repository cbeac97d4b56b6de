"""Pictures as lists of shapes, drawn once and written twice: as a PNG, and as SVG in a page.

Colours are names: of a page's own colours (ink, soft, line, card), of a curve's (c0 to c7), or of
the scale from the worst value to the best (s0 to s6). In a page they follow light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from sparring.draw.charts.html import STYLE
from sparring.draw.charts.png import CARD, COLOURS, INK, LINE, SOFT, Pen

SCALE = ("#ccd5e4", "#aac0e8", "#86a8eb", "#618eec", "#3f73e6", "#2857c8", "#163a94")
DARK_SCALE = ("#36404d", "#3d5271", "#466a9a", "#5083c6", "#659ee9", "#8dbdff", "#cbe2ff")
NAMED = {
    **{"ink": INK, "soft": SOFT, "line": LINE, "card": CARD},
    **{f"c{at}": colour for at, colour in enumerate(COLOURS)},
    **{f"s{at}": colour for at, colour in enumerate(SCALE)},
}
LETTER = 0.56
"""Width of a letter, about, of its height."""
PLACES = {"l": "start", "m": "middle", "r": "end"}
BASELINES = {"s": "alphabetic", "m": "central", "t": "hanging"}
MORE_STYLE = (
    ":root{"
    + "".join(f"--s{at}:{colour};" for at, colour in enumerate(SCALE))
    + "}@media (prefers-color-scheme: dark){:root{"
    + "".join(f"--s{at}:{colour};" for at, colour in enumerate(DARK_SCALE))
    + "}}"
    + """
figure.sheet { overflow-x:auto; margin-bottom:14px }
.sheet svg { display:block; width:100%; min-width:680px; height:auto }
.sheet text { font-family:inherit; font-variant-numeric:tabular-nums }
.sheet .halo { paint-order:stroke; stroke:var(--card); stroke-width:4px; stroke-opacity:.85 }
.sheet g.one:hover * { stroke:var(--c2); stroke-opacity:1; stroke-width:3 }
"""
)


@dataclass(frozen=True)
class Stroke:
    """A line through points."""

    points: Sequence[tuple[float, float]]
    colour: str
    width: float = 1.0
    opacity: float = 1.0
    dashed: bool = False


@dataclass(frozen=True)
class Dot:
    """A circle, filled or hollow."""

    x: float
    y: float
    radius: float
    colour: str
    hollow: bool = False


@dataclass(frozen=True)
class Bar:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str


@dataclass(frozen=True)
class Words:
    """A text. anchor: l, m or r, and s (on the line), m or t (below it).

    halo: on paper of its own, where lines pass.
    """

    x: float
    y: float
    text: str
    size: int = 14
    colour: str = "soft"
    anchor: str = "ls"
    halo: bool = False


@dataclass(frozen=True)
class Told:
    """Shapes that belong together, and what the pointer says of them."""

    text: str
    shapes: Sequence[Stroke | Dot | Bar | Words]


Shape = Stroke | Dot | Bar | Words | Told


@dataclass(frozen=True)
class Sheet:
    """One picture."""

    title: str
    width: float
    height: float
    note: str = ""
    """A line below the title: how to read it."""
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        """Draw on top of what is there."""
        self.shapes.extend(shapes)


def fitting(text: str, room: float, size: int) -> str:
    """A text that is no wider than its place, about; of a long one the end is left out."""
    most = max(int(room / (LETTER * size)), 1)
    return text if len(text) <= most else text[: max(most - 1, 1)] + "…"


HEAD = 74.0
"""Height of title and note, above a sheet's own shapes."""


def draw_sheet_png(sheet: Sheet) -> bytes:
    """Return a sheet as a PNG."""
    pen = Pen(round(sheet.width) + 40, round(sheet.height + HEAD) + 40)
    pen.box(12, 12, sheet.width + 16, sheet.height + HEAD + 16)
    pen.text((36, 46), sheet.title, 20, INK)
    pen.text((36, 70), sheet.note, 14, SOFT)
    for shape in sheet.shapes:
        put(pen, shape, 20.0, 20.0 + HEAD)
    return pen.finish()


def put(pen: Pen, shape: Shape, left: float, top: float) -> None:
    """Draw a shape with a pen."""
    match shape:
        case Told():
            for one in shape.shapes:
                put(pen, one, left, top)
        case Stroke():
            points = [(x + left, y + top) for x, y in shape.points]
            colour = blended(NAMED[shape.colour], shape.opacity)
            (pen.dashes if shape.dashed else pen.line)(points, colour, shape.width)
        case Dot():
            pen.dot(shape.x + left, shape.y + top, shape.radius, NAMED[shape.colour])
            if shape.hollow:
                pen.dot(shape.x + left, shape.y + top, shape.radius - 1.6, CARD)
        case Bar():
            place = shape.x + left, shape.y + top, shape.width, shape.height
            pen.fill(*place, NAMED[shape.colour])
        case Words():
            at = shape.x + left, shape.y + top
            if shape.halo:
                wide, high = pen.width_of(shape.text, shape.size), shape.size + 1
                pen.paper(at[0] - 1, at[1] - high / 2, wide + 2, high)
            pen.text(at, shape.text, shape.size, NAMED[shape.colour], shape.anchor)


def blended(colour: str, opacity: float) -> str:
    """A colour on a card of which something shines through."""
    parts = ([int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in (colour, CARD))
    mixed = (
        round(opacity * mine + (1 - opacity) * page) for mine, page in zip(*parts, strict=True)
    )
    return "#" + "".join(f"{one:02x}" for one in mixed)


def draw_sheets_html(title: str, facts: Sequence[str], sheets: Sequence[Sheet]) -> str:
    """Return a page with all sheets, which needs nothing from elsewhere."""
    told = "".join(f"<span>{escape(fact)}</span>" for fact in facts)
    figures = "".join(map(figure, sheets))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{MORE_STYLE}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="facts">{told}</p>{figures}</main></body></html>\n'
    )


def figure(sheet: Sheet) -> str:
    """A sheet in a page."""
    drawn = "".join(map(as_svg, sheet.shapes))
    return (
        f'<figure class="sheet"><figcaption><b>{escape(sheet.title)}</b></figcaption>'
        f'<p class="facts">{escape(sheet.note)}</p>'
        f'<svg viewBox="0 0 {sheet.width:g} {sheet.height:g}" role="img" '
        f'aria-label="{escape(sheet.title)}" fill="none">{drawn}</svg></figure>'
    )


def as_svg(shape: Shape) -> str:
    """A shape as an element."""
    colour = f"var(--{shape.colour})" if not isinstance(shape, Told) else ""
    match shape:
        case Told():
            inner = "".join(map(as_svg, shape.shapes))
            return f'<g class="one"><title>{escape(shape.text)}</title>{inner}</g>'
        case Stroke():
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in shape.points)
            more = ' stroke-dasharray="6 5"' if shape.dashed else ""
            more += f' stroke-opacity="{shape.opacity:g}"' if shape.opacity < 1 else ""
            return (
                f'<path d="M{path}" stroke="{colour}" stroke-width="{shape.width:g}"'
                f' stroke-linejoin="round"{more}/>'
            )
        case Dot():
            paint = f'fill="{colour}"'
            if shape.hollow:
                paint = f'fill="var(--card)" stroke="{colour}" stroke-width="1.6"'
            return f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:g}" {paint}/>'
        case Bar():
            return (
                f'<rect x="{shape.x:.1f}" y="{shape.y:.1f}" width="{max(shape.width, 0):.1f}" '
                f'height="{shape.height:.1f}" fill="{colour}"/>'
            )
        case Words():
            across, down = PLACES[shape.anchor[0]], BASELINES[shape.anchor[1]]
            halo = ' class="halo"' if shape.halo else ""
            return (
                f'<text{halo} x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size}" '
                f'text-anchor="{across}" dominant-baseline="{down}" fill="{colour}">'
                f"{escape(shape.text)}</text>"
            )
