"""Charts as one PNG, drawn with Pillow."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from sparring.draw.charts.curves import (
    EMPTY,
    FEW_POINTS,
    Chart,
    Floats,
    Page,
    Series,
    label,
    pieces,
)
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
    "#d9650d",
    "#0f8a5f",
    "#b4328a",
    "#6d4bd1",
    "#8f7000",
    "#0b7f93",
    "#8b93a1",
)


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

    def line(self, points: list[tuple[float, float]], colour: str, width: float) -> None:
        """Draw a line through points."""
        scaled = [(x * FINE, y * FINE) for x, y in points]
        self.draw.line(scaled, colour, round(width * FINE), "curve")

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
        self.image.reduce(FINE).save(data, "PNG", optimize=True)
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
        draw_chart(pen, chart, page, (left, top, width, tall))
    if not places:
        pen.box(MARGIN, HEAD, WIDTH - 2 * MARGIN, HEIGHT)
        pen.text((WIDTH / 2, HEAD + HEIGHT / 2), EMPTY, 18, SOFT, "mm")
    return pen.finish()


def arrange(page: Page) -> tuple[list[tuple[Chart, float, float, float, float]], int]:
    """Return where each chart lies (left, top, width, height), and the height of it all."""
    full = WIDTH - 2 * MARGIN
    width = (full - (COLUMNS - 1) * GAP) / COLUMNS
    places: list[tuple[Chart, float, float, float, float]] = []
    top, column = HEAD, 0
    for chart in page.charts:
        if column and (chart.wide or column == COLUMNS):
            top, column = top + HEIGHT + GAP, 0
        if chart.wide:
            places.append((chart, MARGIN, top, full, WIDE_HEIGHT))
            top += WIDE_HEIGHT + GAP
        else:
            places.append((chart, MARGIN + column * (width + GAP), top, width, HEIGHT))
            column += 1
    return places, top + (HEIGHT if column or not places else -GAP) + MARGIN


def draw_chart(
    pen: Pen, chart: Chart, page: Page, place: tuple[float, float, float, float]
) -> None:
    """Draw one card: caption with the last values, axes, curves."""
    left, top, width, tall = place
    pen.box(*place)
    pen.text((left + 20, top + 32), chart.title, 18, INK)
    plot_top = top + 54 + draw_keys(pen, chart, left, top, width)
    x0, x1, y0, y1 = left + 66, left + width - 24, top + tall - 38, plot_top
    low, high = chart.y_range

    def x(minutes: Floats | float) -> Any:
        return x0 + np.asarray(minutes) / page.minutes * (x1 - x0)

    def y(values: Floats | float) -> Any:
        return y0 + (np.clip(values, low, high) - low) / (high - low) * (y1 - y0)

    for value, name in chart.y_ticks:
        at = float(y(value))
        pen.line([(x0, at), (x1, at)], LINE, 1)
        pen.text((x0 - 9, at), name, 14, SOFT, "rm")
    unit = " min"
    for value, name in page.x_ticks:
        pen.text((float(x(value)), y0 + 12), name + unit, 14, SOFT, "mt")
        unit = ""
    if chart.guide is not None:
        at = float(y(chart.guide))
        for start in np.arange(x0, x1, 10):
            pen.line([(start, at), (min(start + 5, x1), at)], SOFT, 1)
        pen.text((x1 - 4, at - 5), chart.guide_name, 14, SOFT, "rs")
    for series in chart.series:
        draw_series(pen, series, chart, x, y)


def draw_keys(pen: Pen, chart: Chart, left: float, top: float, width: float) -> float:
    """Write names and last values beside the title or below it; return how much room they took."""
    words = [(s.name, label(s.last, chart.form)) for s in chart.series]
    wide = [pen.font(15).getlength(f"{name}  {value}") / FINE + 34 for name, value in words]
    inside = width - 40
    title = pen.font(18).getlength(chart.title) / FINE + 30
    below = sum(wide) + title > inside
    x, y = (left + 20, top + 58) if below else (left + width - 20 - sum(wide) + 18, top + 32)
    for series, (name, value), room in zip(chart.series, words, wide, strict=True):
        if x + room - 18 > left + width - 20 and x > left + 20:
            x, y = left + 20, y + 24
        pen.dot(x + 5, y - 5, 5, COLOURS[series.colour])
        after = x + 16 + pen.text((x + 16, y), name, 15, SOFT)
        pen.text((after + 6, y), value, 15, INK)
        x += room
    return y - top - 32


def draw_series(pen: Pen, series: Series, chart: Chart, x: Any, y: Any) -> None:
    """Draw a line with what lies behind it, or one layer of a stack."""
    colour = COLOURS[series.colour]
    if series.low is not None and series.high is not None:
        for part in pieces(series.low, series.high):
            at = x(series.minutes[part])
            there = pairs(at, y(series.high[part]))
            back = pairs(at[::-1], y(series.low[part][::-1]))
            pen.area(there + back, colour, 0.85 if chart.stacked else 0.16)
    if chart.stacked:
        return
    for part in pieces(series.values):
        points = pairs(x(series.minutes[part]), y(series.values[part]))
        pen.line(points, colour, 2)
        if len(series.values) <= FEW_POINTS:
            for point in points:
                pen.dot(*point, 3.2, colour)


def pairs(x: Floats, y: Floats) -> list[tuple[float, float]]:
    """Return places as Pillow has them."""
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True)]
