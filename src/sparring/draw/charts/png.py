"""Charts as one PNG, drawn with Pillow."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from sparring.draw.charts.axes import Floats, label
from sparring.draw.charts.curves import EMPTY, Chart, Page, Series, pieces
from sparring.draw.charts.estimates import Estimates
from sparring.errors import SparringError

WIDTH = 1600
MARGIN, GAP = 40, 20
COLUMNS = 3
HEIGHT, WIDE_HEIGHT, HEAD = 300, 460, 110
"""Of a chart, of a wide one, and of the title."""
FINE = 3
"""Everything is drawn this much larger and made smaller, which smooths its edges."""
PAGE, CARD, INK, SOFT, LINE = "#f6f7f9", "#ffffff", "#16191f", "#5d6572", "#e3e6eb"
COLOURS = (
    "#2563eb",
    "#f27900",
    "#21a563",
    "#8e4aa5",
    "#592311",
    "#284c59",
    "#3f007f",
    "#8b93a1",
)
"""Told apart by everybody: far from each other also for eyes without red, green or blue."""
DASH = 9.0
"""Length of a dash, and of the gap behind it."""
LEAST_NAME = 3
"""Letters below which a name that was cut says nothing."""
ROW = 52
"""Height of an estimate: its name, and the line below."""


class Pen:
    """Draws in pixels of the finished picture."""

    def __init__(self, width: int, height: int) -> None:
        try:
            from PIL import Image, ImageDraw, ImageFont
        except ImportError as missing:
            raise SparringError(
                f"plot.png needs Pillow ({missing}): pip install 'pillow>=10.1'"
            ) from None
        self.new, self.draw_on, self.load_font = Image.new, ImageDraw.Draw, ImageFont.load_default
        self.image = Image.new("RGB", (width * FINE, height * FINE), PAGE)
        self.draw = ImageDraw.Draw(self.image)
        self.known: dict[int, Any] = {}

    def font(self, size: int) -> Any:
        """Pillow's own font, so that it looks the same everywhere."""
        if size not in self.known:
            self.known[size] = self.load_font(size * FINE)
        return self.known[size]

    def text(
        self, at: tuple[float, float], text: str, size: int, colour: str, anchor: str = "ls"
    ) -> float:
        """Write text and return how wide it is."""
        font = self.font(size)
        self.draw.text((at[0] * FINE, at[1] * FINE), text, colour, font, anchor)
        return float(font.getlength(text)) / FINE

    def box(self, x: float, y: float, width: float, height: float) -> None:
        """Draw a card with a thin edge."""
        corners = [x * FINE, y * FINE, (x + width) * FINE, (y + height) * FINE]
        self.draw.rounded_rectangle(corners, 10 * FINE, CARD, LINE, FINE)

    def fill(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """Fill a rectangle."""
        corners = [x * FINE, y * FINE, (x + width) * FINE, (y + height) * FINE]
        self.draw.rectangle(corners, colour)

    def paper(self, x: float, y: float, width: float, height: float) -> None:
        """Cover what is below, nearly."""
        self.area([(x, y), (x + width, y), (x + width, y + height), (x, y + height)], CARD, 0.8)

    def line(self, points: list[tuple[float, float]], colour: str, width: float) -> None:
        """Draw a line through points."""
        scaled = [(x * FINE, y * FINE) for x, y in points]
        self.draw.line(scaled, colour, round(width * FINE), "curve")

    def dashes(self, points: list[tuple[float, float]], colour: str, width: float) -> None:
        """Draw every second stretch of a line through points."""
        places = np.array(points)
        along = np.append(0.0, np.cumsum(np.hypot(*np.diff(places, axis=0).T)))
        for start in np.arange(0.0, along[-1], 2 * DASH):
            end = min(start + DASH, along[-1])
            inner = along[(along > start) & (along < end)]
            at = np.concatenate([[start], inner, [end]])
            self.line(pairs(*(np.interp(at, along, places[:, n]) for n in (0, 1))), colour, width)

    def width_of(self, text: str, size: int) -> float:
        """Return how wide a text would be."""
        return float(self.font(size).getlength(text)) / FINE

    def dot(self, x: float, y: float, radius: float, colour: str) -> None:
        """Draw a filled circle."""
        corners = [(x - radius) * FINE, (y - radius) * FINE]
        self.draw.ellipse([*corners, (x + radius) * FINE, (y + radius) * FINE], colour)

    def area(self, points: list[tuple[float, float]], colour: str, opacity: float) -> None:
        """Fill a shape through which what is below can be seen."""
        scaled = np.array(points) * FINE
        corner = np.floor(scaled.min(axis=0)).astype(int)
        width, height = (int(n) for n in np.ceil(scaled.max(axis=0) - corner) + 1)
        mask = self.new("L", (width, height), 0)
        self.draw_on(mask).polygon([*map(tuple, scaled - corner)], fill=round(255 * opacity))
        fill = self.new("RGB", (width, height), colour)
        self.image.paste(fill, (int(corner[0]), int(corner[1])), mask)

    def finish(self) -> bytes:
        """Return the PNG file."""
        data = io.BytesIO()
        self.image.reduce(FINE).save(data, "PNG")
        return data.getvalue()


def draw_png(page: Page) -> bytes:
    """Return the whole picture."""
    places, height = arrange(page)
    pen = Pen(WIDTH, height)
    pen.text((MARGIN, 52), page.title, 28, INK)
    x: float = MARGIN
    for fact in page.facts:
        x += pen.text((x, 84), fact, 16, SOFT) + 28
    for chart, left, top, width, tall in places:
        if isinstance(chart, Estimates):
            draw_estimates(pen, chart, (left, top, width, tall))
        else:
            draw_chart(pen, chart, page, (left, top, width, tall))
    if not places:
        pen.box(MARGIN, HEAD, WIDTH - 2 * MARGIN, HEIGHT)
        pen.text((WIDTH / 2, HEAD + HEIGHT / 2), EMPTY, 18, SOFT, "mm")
    return pen.finish()


Place = tuple[float, float, float, float]
"""Left, top, width, height."""


def arrange(page: Page) -> tuple[list[tuple[Chart | Estimates, *Place]], int]:
    """Return where each chart lies, and the height of it all."""
    full = WIDTH - 2 * MARGIN
    width = (full - (COLUMNS - 1) * GAP) / COLUMNS
    places: list[tuple[Chart | Estimates, *Place]] = []
    top, row = HEAD, list[Chart | Estimates]()

    def end_row() -> int:
        """Lay a row's charts side by side, all as high as the highest of them."""
        tall = max(map(height_of, row))
        for at, chart in enumerate(row):
            places.append((chart, MARGIN + at * (width + GAP), top, width, tall))
        row.clear()
        return top + tall + GAP

    for chart in page.charts:
        wide = isinstance(chart, Chart) and chart.wide
        if row and (wide or len(row) == COLUMNS):
            top = end_row()
        if wide:
            places.append((chart, MARGIN, top, full, WIDE_HEIGHT))
            top += WIDE_HEIGHT + GAP
        else:
            row.append(chart)
    if row:
        top = end_row()
    return places, top + (MARGIN - GAP if places else HEIGHT + MARGIN)


def height_of(chart: Chart | Estimates) -> int:
    """Return how much room a chart needs that is not wide."""
    return 108 + ROW * len(chart.rows) if isinstance(chart, Estimates) else HEIGHT


def draw_chart(pen: Pen, chart: Chart, page: Page, place: Place) -> None:
    """Draw one card: caption with the last values, axes, curves."""
    left, top, width, tall = place
    pen.box(*place)
    pen.text((left + 20, top + 32), chart.title, 18, INK)
    plot_top = top + 54 + draw_keys(pen, chart, left, top, width)
    axis = chart.axis or page.axis
    x0, x1, y0, y1 = left + 66, left + width - 24, top + tall - 38, plot_top
    y0 -= 16 if axis.caption else 0
    low, high = chart.y_range

    def x(place: Floats | float) -> Any:
        return x0 + np.asarray(place) / axis.end * (x1 - x0)

    def y(values: Floats | float) -> Any:
        return y0 + (np.clip(values, low, high) - low) / (high - low) * (y1 - y0)

    for value, name in chart.y_ticks:
        at = float(y(value))
        pen.line([(x0, at), (x1, at)], LINE, 1)
        pen.text((x0 - 9, at), name, 14, SOFT, "rm")
    unit = axis.unit
    for value, name in axis.ticks:
        pen.text((float(x(value)), y0 + 12), name + unit, 14, SOFT, "mt")
        unit = ""
    pen.text(((x0 + x1) / 2, y0 + 30), axis.caption, 14, SOFT, "mt")
    if chart.guide is not None:
        at = float(y(chart.guide))
        for start in np.arange(x0, x1, 10):
            pen.line([(start, at), (min(start + 5, x1), at)], SOFT, 1)
    for mark, _, _ in page.marked(chart):
        at = float(x(mark.x))
        if mark.x > 0:
            for start in np.arange(y1, y0, 10):
                pen.line([(at, start), (at, min(start + 5, y0))], SOFT, 1)
    for series in chart.series:
        draw_series(pen, series, chart, x, y)
    for mark, room, named in page.marked(chart):
        if named:
            draw_mark(pen, mark.name, float(x(mark.x)), y1, float(x(room)) - x0)
    if chart.guide is not None:
        # Last, on paper of its own: lines may still pass.
        at, room = float(y(chart.guide)), pen.width_of(chart.guide_name, 14)
        start = x0 if chart.guide_on_left(axis) else x1 - room - 8
        pen.paper(start, at - 22, room + 8, 19)
        pen.text((start + 4, at - 7), chart.guide_name, 14, SOFT)


def draw_mark(pen: Pen, name: str, at: float, top: float, room: float) -> None:
    """Name a moment at the top of its line, if there is room for a word or two."""
    text = shortened(pen, name, room - 12, 14)
    if len(text) > LEAST_NAME or text == name:
        wide = pen.width_of(text, 14)
        pen.paper(at + 3, top - 2, wide + 6, 19)
        pen.text((at + 6, top + 13), text, 14, SOFT)


def draw_keys(pen: Pen, chart: Chart, left: float, top: float, width: float) -> float:
    """Write names and last values beside the title or below it; return how much room they took."""
    named = chart.named
    step = 0.0 if named else 1e-9  # keys without names are many, and short
    words = [(s.name if named else "", label(s.last, chart.form, step)) for s in chart.series]
    wide = [pen.width_of(f"{name}  {value}" if named else value, 15) + 34 for name, value in words]
    inside = width - 40
    title = pen.width_of(chart.title, 18) + 30
    below = sum(wide) + title > inside
    x, y = (left + 20, top + 58) if below else (left + width - 20 - sum(wide) + 18, top + 32)
    for series, (name, value), room in zip(chart.series, words, wide, strict=True):
        if x + room - 18 > left + width - 20 and x > left + 20:
            x, y = left + 20, y + 24
        pen.dot(x + 5, y - 5, 5, COLOURS[series.colour])
        if series.dashed:
            pen.dot(x + 5, y - 5, 2.5, CARD)
        after = x + 16 + (pen.text((x + 16, y), name, 15, SOFT) + 6 if name else 0)
        pen.text((after, y), value, 15, INK)
        x += room
    return y - top - 32


def draw_series(pen: Pen, series: Series, chart: Chart, x: Any, y: Any) -> None:
    """Draw a line with what lies behind it, or one layer of a stack."""
    colour = COLOURS[series.colour]
    if series.low is not None and series.high is not None:
        for part in pieces(series.low, series.high):
            at = x(series.x[part])
            there = pairs(at, y(series.high[part]))
            back = pairs(at[::-1], y(series.low[part][::-1]))
            pen.area(there + back, colour, 0.85 if chart.stacked else 0.16)
    if chart.stacked:
        return
    for part in pieces(series.values):
        points = pairs(x(series.x[part]), y(series.values[part]))
        if series.joined:
            (pen.dashes if series.dashed else pen.line)(points, colour, 2)
        if chart.dotted or not series.joined:
            for point in points:
                pen.dot(*point, 3.2 if series.joined else 5.0, colour)


def draw_estimates(pen: Pen, chart: Estimates, place: Place) -> None:
    """Draw one card: a line per estimate, its name and numbers above it."""
    left, top, width, tall = place
    pen.box(*place)
    pen.text((left + 20, top + 32), chart.title, 18, INK)
    x0, x1, y0, y1 = left + 32, left + width - 32, top + tall - 38, top + 54
    low, high = chart.x_range

    def x(value: float) -> float:
        return x0 + (min(max(value, low), high) - low) / (high - low) * (x1 - x0)

    for value, name in chart.x_ticks:
        pen.line([(x(value), y1), (x(value), y0)], LINE, 1)
        pen.text((x(value), y0 + 12), name, 14, SOFT, "mt")
    if chart.guide is not None:
        for start in np.arange(y1, y0, 10):
            pen.line([(x(chart.guide), start), (x(chart.guide), min(start + 5, y0))], SOFT, 1)
    for at, row in enumerate(chart.rows):
        y, colour = y1 + ROW * at, COLOURS[row.colour]
        shown = row.shown(chart.form)
        room = x1 - x0 - pen.width_of(shown, 15) - 18
        name = shortened(pen, row.name, room)
        pen.paper(x0, y + 1, x1 - x0, 25)
        pen.text((left + 20, y + 20), name, 15, SOFT)
        pen.text((left + width - 20, y + 20), shown, 15, INK, "rs")
        if row.low is not None and row.high is not None:
            pen.line([(x(row.low), y + 37), (x(row.high), y + 37)], colour, 3)
        for value in row.points:
            pen.dot(x(value), y + 37, 3, INK)
        if np.isfinite(row.value):
            pen.dot(x(row.value), y + 37, 6, colour)


def shortened(pen: Pen, text: str, room: float, size: int = 15) -> str:
    """Cut a text that is too long for its place."""
    if pen.width_of(text, size) <= room:
        return text
    while text and pen.width_of(text + "…", size) > room:
        text = text[:-1]
    return text + "…"


def pairs(x: Floats, y: Floats) -> list[tuple[float, float]]:
    """Return places as Pillow has them."""
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True)]
