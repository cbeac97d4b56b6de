"""CAGE-2's network as an SVG map: blue's beliefs, red's true access, red's last move."""

from __future__ import annotations

from html import escape

from sparring.games.cage2 import (
    HOSTS,
    SUBNETS,
    Cage2Position,
    access_text,
    headline,
    last_moves,
    read,
)
from sparring.games.picture import SvgPicture
from sparring.games.state import State
from sparring.games.text_width import text_width, truncate_text

BOX_W, BOX_H, GAP, MARGIN = 190, 82, 14, 24
TEXT_W = BOX_W - 24
"""Width for text in a box."""
COLUMN_W = BOX_W + 70
TOP = 76
"""Top of the subnets, in pixels."""
BELIEF_FILL = {"no": "#f2f5f3", "unknown": "#e6e3f5", "user": "#fbe7c2", "privileged": "#f6c6bd"}
LEVEL_STROKE = {"none": "#8a938d", "user": "#d48806", "privileged": "#c0262d"}
ACTIVITY_FILL = {"scan": "#2f6fb2", "exploit": "#c0262d"}
STYLE = "font-family: 'DejaVu Sans', Verdana, sans-serif"


def map_svg(state: State, viewer: int | None = None) -> str:
    """Return the map. Fill: blue's belief; border: true access; dot: current activity.

    viewer: None shows everything, a seat only what blue knows.
    """
    at = read(state)
    everything = viewer is None
    width = 2 * MARGIN + 3 * COLUMN_W - (COLUMN_W - BOX_W)
    height = TOP + 5 * (BOX_H + GAP) + 122
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" style="{STYLE}">',
        '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="7" refY="4.5" '
        'orient="auto"><path d="M0,0 L9,4.5 L0,9 z" fill="#c0262d"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text(MARGIN, 30, headline(state, at, everything), size=16, bold=True),
    ]
    if everything:
        parts += red_arrow(at)  # first, so that the boxes lie above it
    for column, (subnet, hosts) in enumerate(SUBNETS.items()):
        x = MARGIN + column * COLUMN_W
        parts.append(text(x, TOP - 12, f"{subnet} subnet", size=13, color="#5b655f"))
        for h in hosts:
            parts += host_box(at, h, everything)
    foot = height - 16 * len(last_moves(at, everything)) - 36
    for number, line in enumerate(last_moves(at, everything)):
        parts.append(text(MARGIN, foot + 16 * number, line, size=12))
    parts += legend(height - 16, everything)
    return "\n".join([*parts, "</svg>"])


def corner(h: int) -> tuple[int, int]:
    """Return the upper left corner of a host's box."""
    for column, hosts in enumerate(SUBNETS.values()):
        if h in hosts:
            return MARGIN + column * COLUMN_W, TOP + hosts.index(h) * (BOX_H + GAP)
    raise IndexError(h)


def host_box(at: Cage2Position, h: int, everything: bool) -> list[str]:
    x, y = corner(h)
    level = at.levels[h] if everything else "none"
    stroke, thick = LEVEL_STROKE[level], 1 if level == "none" else 3
    parts = [
        f'<rect x="{x}" y="{y}" width="{BOX_W}" height="{BOX_H}" rx="8" '
        f'fill="{BELIEF_FILL[at.labels[h]]}" stroke="{stroke}" stroke-width="{thick}"/>',
        text(x + 12, y + 21, HOSTS[h], size=13, bold=True),
        text(x + 12, y + 38, f"believed: {at.labels[h]}", size=11, color="#39413c"),
    ]
    if everything:
        truth = truncate_text(f"true: {access_text(at, h)}", 11, TEXT_W)
        parts.append(text(x + 12, y + 54, truth, size=11, color=stroke))
    if at.decoys[h]:
        shown = truncate_text(f"decoys: {' '.join(map(str, at.decoys[h]))}", 11, TEXT_W)
        parts.append(text(x + 12, y + 70, shown, size=11, color="#2f6f4f"))
    if at.activity[h] in ACTIVITY_FILL:
        fill = ACTIVITY_FILL[at.activity[h]]
        parts.append(f'<circle cx="{x + BOX_W - 16}" cy="{y + 34}" r="6" fill="{fill}"/>')
    return parts


def red_arrow(at: Cage2Position) -> list[str]:
    """Draw red's last move as an arrow from User0; dashed if it failed."""
    move = at.red_move
    if move.target not in HOSTS or move.target == "User0":
        return []
    from_x, from_y = corner(HOSTS.index("User0"))
    to_x, to_y = corner(HOSTS.index(move.target))
    x1, y1 = from_x + BOX_W, from_y + BOX_H / 2
    x2, y2 = (to_x, to_y + BOX_H / 2) if to_x > from_x else (to_x + BOX_W, to_y + BOX_H / 2)
    bend = x1 + 44
    dash = "" if move.succeeded else ' stroke-dasharray="6 4"'
    return [
        f'<path d="M{x1},{y1} C{bend},{y1} {bend if to_x == from_x else x2 - 44},{y2} {x2},{y2}" '
        f'fill="none" stroke="#c0262d" stroke-width="2"{dash} marker-end="url(#tip)"/>'
    ]


def legend(y: int, everything: bool) -> list[str]:
    x = MARGIN
    parts = []
    marks = [(fill, f"believed {label}") for label, fill in BELIEF_FILL.items()]
    marks += [(fill, f"{activity} now") for activity, fill in ACTIVITY_FILL.items()]
    if everything:
        marks.append((LEVEL_STROKE["privileged"], "border: true access"))
    for fill, words in marks:
        parts.append(
            f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{fill}" stroke="#8a938d"/>'
        )
        parts.append(text(x + 14, y, words, size=10, color="#5b655f"))
        x += 25 + round(text_width(words, 10))
    return parts


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: int,
    color: str = "#1d2420",
    bold: bool = False,
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}"{weight}>{escape(words)}</text>'


PICTURE = SvgPicture(map_svg, frame_s=0.8)
