"""Charts of a league: ratings with intervals, ratings over time, the payoff matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparring.draw.charts.axes import Axis, By, Floats, padded_range, ticks
from sparring.draw.charts.chart import Chart, Series
from sparring.draw.charts.curves import color_of
from sparring.draw.charts.page import (
    CARD,
    COLORS,
    INK,
    LINE,
    MARGIN,
    SOFT,
    Area,
    Card,
    ChartPage,
)
from sparring.games.text_width import text_width, truncate_text

LADDER_WIDTH = 1200
RUNGS = {12: 44, 40: 30, math.inf: 20}
"""Height of a rung in pixels, by the maximum number of players."""
CELLS = {10: 92, 20: 60, 40: 34, math.inf: 18}
"""Size of a cell in pixels, by the maximum number of players."""
WITH_INTERVAL, WITH_NUMBER = 80, 34
"""Minimum size of cells with an interval, and with a number."""
MIN_WIDTH = 720
"""Of a matrix, in pixels."""
MAX_NAME_WIDTH = 300
"""In pixels; a longer name is cut."""
BEATEN, BEATS = (242, 121, 0), (37, 99, 235)
"""Colors of a share of 0 and of 1; distinct also with color blindness."""
MAX_COLOR_SHARE = 0.7
"""Saturation of the strongest cell; black numbers stay readable on it."""


@dataclass(frozen=True)
class Rung:
    """A player on the ladder."""

    name: str
    rating: float
    low: float
    """Ends of the 95 % interval; the rating itself if it is fixed."""
    high: float
    fixed: bool = False
    """Whether it is an anchor."""
    bot: bool = False
    """Drawn in another color."""

    @property
    def shown(self) -> str:
        """The rating as text."""
        ends = "fixed" if self.fixed else f"{self.low:.0f} .. {self.high:.0f}"
        return f"{self.rating:.0f}  ({ends})"


@dataclass(frozen=True)
class Payoff:
    """Win shares of the players on the left against those above."""

    names: tuple[str, ...]
    share: Floats
    """[players, players], nan where two never met."""
    low: Floats | None = None
    high: Floats | None = None
    """The ends of the 95 % intervals."""
    parity: float = 0.5
    """Win share of an equal player: the middle of the colors."""


def size_for(players: int, sizes: dict[float, int]) -> int:
    """Return the size for a number of players."""
    return next(size for most, size in sizes.items() if players <= most)


def draw_names(area: Area, names: Sequence[str], top: float, each: float) -> float:
    """Draw numbered names in a column; return where the longest one ends."""
    size = 12 if each <= 20 else 14
    ends = []
    for at, name in enumerate(names):
        y = top + each * (at + 0.5)
        area.text(40, y, str(at + 1), size, SOFT, anchor="rm")
        ends.append(
            area.text(52, y, truncate_text(name, size, MAX_NAME_WIDTH), size, INK, anchor="lm")
        )
    return max(ends, default=52)


@dataclass(frozen=True)
class Ladder(Card):
    """Ratings in the given order, usually best first."""

    rungs: Sequence[Rung]
    unit: str
    title, wide = "", True

    @property
    def rung_height(self) -> int:
        """Pixels of a rung."""
        return size_for(len(self.rungs), RUNGS)

    @property
    def height(self) -> float:
        return 62 + self.rung_height * len(self.rungs)

    def draw(self, area: Area, page: ChartPage) -> None:
        """Draw every rating with its interval; an anchor is a ring."""
        count, right = len(self.rungs), 260
        left = draw_names(area, [rung.name for rung in self.rungs], 14, self.rung_height) + 30
        axes = area.axes(left, 14, right, 48)
        axes.set_xlim(
            padded_range((v for r in self.rungs for v in (r.rating, r.low, r.high)), 0.05)
        )
        axes.set_ylim(count, 0)
        axes.set_xticks(ticks(*axes.get_xlim(), 7))
        axes.set_yticks([])
        axes.grid(axis="x")
        for at, rung in enumerate(self.rungs):
            color, y = COLORS[1 if rung.bot else 0], at + 0.5
            if not rung.fixed:
                ends = rung.rating - rung.low, rung.high - rung.rating
                error = [[max(end, 0.0)] for end in ends]  # of files that say anything
                axes.errorbar(
                    rung.rating, y, xerr=error, color=color, lw=2.5, capsize=5, capthick=2.5
                )
            inside = CARD if rung.fixed else color
            axes.plot([rung.rating], [y], "o", ms=9, mfc=inside, mec=color, mew=3)
            place = area.width - right + 24, 14 + self.rung_height * y
            area.text(*place, rung.shown, 12 if self.rung_height <= 20 else 14, INK, anchor="lm")
        text = f"{self.unit}, 95 %; orange: bots"
        area.text(area.width - right + 24, area.height - 24, text)


@dataclass(frozen=True)
class Matrix(Card):
    """The payoff matrix, with colors centered on equal strength."""

    payoff: Payoff
    title, wide = "", True

    @property
    def cell(self) -> int:
        return size_for(len(self.payoff.names), CELLS)

    @property
    def height(self) -> float:
        return 112 + self.cell * len(self.payoff.names)

    def draw(self, area: Area, page: ChartPage) -> None:
        """Draw cells with their numbers, and the color scale."""
        payoff, cell = self.payoff, self.cell
        count = len(payoff.names)
        left = draw_names(area, payoff.names, 42, cell) + 20
        axes = area.axes(left, 42, area.width - left - cell * count, 70)
        axes.set(xlim=(0, count), ylim=(count, 0), yticks=[])
        axes.xaxis.tick_top()
        axes.set_xticks(np.arange(count) + 0.5, [str(at + 1) for at in range(count)])
        colors = np.full((count, count, 3), rgb(CARD))
        colors[np.diag_indices(count)] = rgb(LINE)
        met = np.isfinite(payoff.share) & ~np.eye(count, dtype=bool)
        for row, column in np.argwhere(met):
            share = float(payoff.share[row, column])
            colors[row, column] = rgb(color_for(share, payoff.parity))
            if cell < WITH_NUMBER:
                continue
            x, y = left + cell * (column + 0.49), 42 + cell * (row + 0.5)
            if cell < WITH_INTERVAL:
                size = 14 if cell > WITH_NUMBER else 11
                area.text(x, y, f"{100 * share:.0f}", size, INK, anchor="mm")
                continue
            if payoff.low is not None and payoff.high is not None:
                low, high = (100 * end[row, column] for end in (payoff.low, payoff.high))
                area.text(x, y + 16, f"{low:.1f}..{high:.1f}", 12, INK, anchor="mm")
                y -= 9
            area.text(x, y, f"{100 * share:.1f}", 19, INK, anchor="mm")
        axes.pcolormesh(colors, edgecolors=CARD, linewidth=2)
        self.draw_scale(area, left)

    def draw_scale(self, area: Area, left: float) -> None:
        parity = self.payoff.parity
        axes = area.axes(left, area.height - 48, area.width - left - 200, 36)
        shares = np.linspace(0, 1, 100)
        colors = [rgb(color_for(share, parity)) for share in shares[:-1]]
        axes.pcolormesh(shares, [0, 1], [colors])
        axes.set_xticks([0, parity, 1], ["0", f"{100 * parity:.3g}", "100 %"])
        axes.tick_params(pad=5)
        axes.set_yticks([])
        text = f"win share; {100 * parity:.3g} % among equals"
        area.text(left + 240, area.height - 42, text, anchor="lm")


def color_for(share: float, parity: float) -> str:
    """Return the color of a share; white at parity."""
    above = share >= parity
    far = (share - parity) / (1 - parity) if above else (parity - share) / parity
    end = BEATS if above else BEATEN
    mixed = [round(255 + (channel - 255) * MAX_COLOR_SHARE * far) for channel in end]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def rgb(color: str) -> list[float]:
    return [part / 255 for part in bytes.fromhex(color[1:])]


def ladder_page(
    rungs: Sequence[Rung], *, title: str, facts: Sequence[str] = (), unit: str = "Elo"
) -> ChartPage:
    return ChartPage(title, tuple(facts), (Ladder(rungs, unit),), width=LADDER_WIDTH)


def payoff_page(payoff: Payoff, *, title: str, facts: Sequence[str] = ()) -> ChartPage:
    """Return the page of a matrix, as wide as its names and cells."""
    matrix = Matrix(payoff)
    names = max((text_width(name, 14) for name in payoff.names), default=0)
    cells = matrix.cell * len(payoff.names)
    wide = round(min(names, MAX_NAME_WIDTH) + cells + 2 * MARGIN + 100)
    return ChartPage(title, ("row against column", *facts), (matrix,), width=max(MIN_WIDTH, wide))


def past_page(players: Sequence[Series], *, title: str, by: By = "decisions") -> ChartPage:
    """Return ratings over time: a line per player with its interval."""
    looks = map(color_of, range(len(players)))
    lines = tuple(
        replace(player, color=color, dashed=dashed)
        for player, (color, dashed) in zip(players, looks, strict=True)
    )
    end = max((float(line.x.max()) for line in lines if len(line.x)), default=1.0)
    charts = (Chart("Rating, Elo", lines, wide=True),) if lines else ()
    return ChartPage(title, (), charts, Axis(by, end or 1.0))
