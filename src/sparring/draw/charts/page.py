"""Pages of charts, drawn with matplotlib: PNG, SVG, PDF, or HTML with tooltips.

Does not use pyplot; the same page gives the same bytes.
"""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sparring.draw.charts.axes import Axis, AxisMark, Form, named_ticks
from sparring.errors import ConfigError
from sparring.games.text_width import truncate_text

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf", ".html")
"""File formats of a page."""
PAGE, CARD, INK, SOFT, LINE = "#f6f7f9", "#ffffff", "#16191f", "#5d6572", "#e3e6eb"
COLORS = (
    "#2563eb",
    "#f27900",
    "#21a563",
    "#8e4aa5",
    "#592311",
    "#284c59",
    "#3f007f",
    "#8b93a1",
)
"""Distinct also with color blindness."""
SCALE = ("#ccd5e4", "#aac0e8", "#86a8eb", "#618eec", "#3f73e6", "#2857c8", "#163a94")
"""From the worst value to the best."""
CSS_NAMES = {
    **{CARD: "card", INK: "ink", SOFT: "soft", LINE: "line"},
    **{color: f"c{at}" for at, color in enumerate(COLORS)},
    **{color: f"s{at}" for at, color in enumerate(SCALE)},
}
"""CSS variables of the colors, which differ in dark mode."""
WIDTH = 1600
MARGIN, GAP = 40, 20
COLUMNS = 3
HEIGHT, HEAD = 300, 110
"""Of a chart, and of a page's title."""
EMPTY = "Nothing has been measured yet. Draw this again once the run has made an update."
UNTIMED = Axis("minutes", 1.0)
DASHES = (0, (5, 4))
PAPER: dict[str, Any] = {"fc": CARD, "alpha": 0.8, "lw": 0, "pad": 1.5}
"""Background of labels that lines cross."""
ACROSS = {"l": "left", "m": "center", "r": "right"}
DOWN = {"s": "baseline", "m": "center_baseline", "t": "top"}
STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": SOFT,
    "axes.facecolor": "none",
    "axes.labelcolor": SOFT,
    **{f"axes.spines.{side}": False for side in ("left", "right", "top", "bottom")},
    "axes.xmargin": 0,
    "font.family": "DejaVu Sans",
    "font.size": 13,
    "grid.color": LINE,
    "grid.linewidth": 1,
    "lines.solid_capstyle": "round",
    "pdf.fonttype": 42,
    "svg.hashsalt": "sparring",
    "text.parse_math": False,
    **{f"{axis}tick.color": SOFT for axis in "xy"},
    **{f"{axis}tick.major.size": 0 for axis in "xy"},
    **{f"{axis}tick.major.pad": 9 for axis in "xy"},
}
NO_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
    ".pdf": dict.fromkeys(("Creator", "CreationDate", "Producer")),
}
"""Removes metadata, which would change the bytes."""


@dataclass(frozen=True)
class Area:
    """A rectangle of a figure, in pixels from its upper left corner."""

    figure: Figure
    left: float
    top: float
    width: float
    height: float

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 13,
        color: str = SOFT,
        *,
        anchor: str = "ls",
    ) -> float:
        """Write text and return where it ends. anchor: l, m or r; s (on the line), m or t."""
        wide, high = self.figure.get_size_inches() * self.figure.dpi
        place = (self.left + x) / wide, 1 - (self.top + y) / high
        across, down = ACROSS[anchor[0]], DOWN[anchor[1]]
        drawn = self.figure.text(*place, text, size=size, color=color, ha=across, va=down)
        return float(drawn.get_window_extent().x1) - self.left

    def axes(self, left: float, top: float, right: float, bottom: float) -> Axes:
        """Return axes at these distances from the edges."""
        wide, high = self.figure.get_size_inches() * self.figure.dpi
        x, y = self.left + left, high - self.top - self.height + bottom
        size = (self.width - left - right) / wide, (self.height - top - bottom) / high
        return self.figure.add_axes((x / wide, y / high, *size))


class Card:
    """A rectangle of a page, such as a chart."""

    title: str
    wide: bool
    """Whether it has the whole width."""

    @property
    def height(self) -> float:
        """In pixels."""
        return HEIGHT

    def draw(self, area: Area, page: ChartPage) -> None:
        raise NotImplementedError

    def pointed(self, page: ChartPage) -> dict[str, Any]:
        """Return the data of tooltips, {} for none."""
        return {}


@dataclass(frozen=True)
class ChartPage:
    """A title and cards: of a run, a comparison, a search."""

    title: str
    facts: tuple[str, ...]
    charts: tuple[Card, ...]
    axis: Axis = UNTIMED
    """Horizontal axis of charts without their own."""
    marks: tuple[AxisMark, ...] = ()
    """Drawn into every chart, and labeled in the first."""
    width: int = WIDTH


class EmptyCard(Card):
    """The card of an empty page."""

    title, wide = "", True

    def draw(self, area: Area, page: ChartPage) -> None:
        area.text(area.width / 2, area.height / 2, EMPTY, 17, SOFT, anchor="mm")


def check_matplotlib() -> None:
    """Raise if matplotlib is missing, before work that ends in a chart."""
    if find_spec("matplotlib") is None:
        raise ConfigError("charts need matplotlib: pip install 'sparring[plot]'")


def render(page: ChartPage, suffix: str) -> bytes:
    """Return a page as a file of a format."""
    check_matplotlib()
    with fixed_style():
        if suffix == ".html":
            return html_of(page).encode()
        return save_figure(figure_of(page), suffix)


@contextmanager
def fixed_style() -> Iterator[None]:
    """Use sparring's matplotlib style, not the user's."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def new_figure(width: float, height: float, color: str) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((width / 72, height / 72), dpi=72, facecolor=color)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, suffix: str, **more: Any) -> bytes:
    """Return a figure as a file; in an SVG, tooltips become titles."""
    data = io.BytesIO()
    figure.savefig(data, format=suffix[1:], metadata=NO_METADATA[suffix], **more)
    if suffix != ".svg":
        return data.getvalue()
    svg = re.sub(
        rb'<g id="tooltip ([^"]*)">', rb'<g class="one"><title>\1</title>', data.getvalue()
    )
    return re.sub(rb"[ \t]+\n", b"\n", svg)


def set_tooltip(text: str, *artists: Artist) -> None:
    """Set the tooltip of drawn objects."""
    for artist in artists:
        artist.set_gid(f"tooltip {text}")


def figure_of(page: ChartPage) -> Figure:
    """Return the figure of a page: rows of cards, as high as the highest card of the row."""
    from matplotlib.patches import FancyBboxPatch

    cards = page.charts or (EmptyCard(),)
    full = page.width - 2 * MARGIN
    narrow = (full - (COLUMNS - 1) * GAP) / COLUMNS
    head = HEAD if page.title else MARGIN
    rows = rows_of(cards)
    tall = sum(max(card.height for card in row) + GAP for row in rows)
    figure = new_figure(page.width, head + tall + MARGIN - GAP, PAGE)
    paper = Area(figure, 0, 0, page.width, head + tall)
    paper.text(MARGIN, 52, truncate_text(page.title, 26, full), 26, INK)
    paper.text(MARGIN, 84, truncate_text("  ·  ".join(page.facts), 15, full), 15)
    top = float(head)
    for row in rows:
        height = max(card.height for card in row)
        for at, card in enumerate(row):
            width = full if card.wide else narrow
            area = Area(figure, MARGIN + at * (narrow + GAP), top, width, height)
            corner = area.left, paper.height + MARGIN - GAP - top - height
            style = f"round,pad=0,rounding_size={GAP / 2}"
            box = FancyBboxPatch(corner, width, height, style, fc=CARD, ec=LINE, lw=1, zorder=-1)
            figure.add_artist(box).set_transform(None)
            card.draw(area, page)
        top += height + GAP
    return figure


def rows_of(cards: Sequence[Card]) -> list[list[Card]]:
    """Arrange cards in rows; a wide card has its own row."""
    rows: list[list[Card]] = []
    for card in cards:
        if card.wide or not rows or rows[-1][0].wide or len(rows[-1]) == COLUMNS:
            rows.append([])
        rows[-1].append(card)
    return rows


def html_of(page: ChartPage) -> str:
    """Return a self-contained HTML page."""
    cards = "".join(card_html(card, page) for card in page.charts or (EmptyCard(),))
    return fill_template("page.html", page.title, page.facts, CARDS=cards)


def fill_template(file: str, title: str, facts: Sequence[str], **more: str) -> str:
    """Return an HTML template of this folder with its placeholders filled."""
    text = (resources.files(__package__) / file).read_text("utf-8")
    spans = "".join(f"<span>{escape(fact)}</span>" for fact in facts)
    for name, value in {"TITLE": escape(title), "FACTS": spans, **more}.items():
        text = text.replace(f"@{name}@", value)
    return text


def as_script(numbers: dict[str, Any]) -> str:
    """Return JSON for an inline script."""
    return json.dumps(numbers, separators=(",", ":")).replace("<", "\\u003c")


def card_html(card: Card, page: ChartPage) -> str:
    import matplotlib

    full = page.width - 2 * MARGIN
    width = full if card.wide else (full - (COLUMNS - 1) * GAP) / COLUMNS
    figure = new_figure(width, card.height, "none")
    card.draw(Area(figure, 0, 0, width, card.height), page)
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        text = save_figure(figure, ".svg").decode()
    inner = text.partition("viewBox")[2]
    for color, name in CSS_NAMES.items():
        inner = inner.replace(color, f"var(--{name})")
    head = (
        f'<svg role="img" aria-label="{escape(card.title)}" viewBox="0 0 {width:g} {card.height:g}"'
    )
    numbers = card.pointed(page)
    data = f'<script type="application/json">{as_script(numbers)}</script>' if numbers else ""
    kind = ' class="wide"' if card.wide else ""
    return f"<figure{kind}>{head}{inner[inner.index('>') :]}{data}</figure>"


def set_y_axis(axes: Axes, low: float, high: float, form: Form, about: int = 4) -> None:
    """Set the range of the y axis, with grid lines at round values."""
    axes.set_ylim(low, high)
    set_ticks(axes.yaxis, named_ticks(low, high, about, form))
    axes.grid(axis="y")


def set_ticks(axis: XAxis | YAxis, named: Sequence[tuple[float, str]]) -> None:
    axis.set_ticks([place for place, _ in named], [name for _, name in named])


def write_beside(
    axes: Axes, at: tuple[float, float], pixels: tuple[float, float], text: str, **more: Any
) -> None:
    """Write text at an offset in pixels, with a background, as lines may cross it."""
    looks: Any = {"color": SOFT, "bbox": PAPER, "zorder": 5} | more
    axes.annotate(text, at, pixels, textcoords="offset pixels", **looks)
