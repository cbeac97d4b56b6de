"""Who beats whom: a matrix of win shares as a picture, its colours centred on equal strength."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparring.draw.charts.png import CARD, HEAD, INK, LINE, MARGIN, SOFT, Pen, shortened

Floats = npt.NDArray[np.float64]

NARROWEST = 640
"""Pixels of a picture, however few players there are."""
CELL_SIZES = ((10, 92), (20, 60), (40, 34))
"""Players up to which a cell is so large; beyond the last, LEAST_CELL."""
LEAST_CELL = 18
WITH_INTERVAL, WITH_NUMBER = 80, 34
"""Cells from this size on have room for an interval, and for a number."""
LONGEST_NAME = 260
"""Pixels; a longer name is cut."""
BEATEN, BEATS = (242, 121, 0), (37, 99, 235)
"""Colours of a share of 0 and of 1: orange and blue are told apart by everybody."""
STRONGEST = 0.7
"""How much of its colour the strongest cell has; black numbers stay readable on it."""


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
    """What an equal wins: the middle of the colours."""


def draw_payoff(payoff: Payoff, *, title: str, facts: Sequence[str] = ()) -> bytes:
    """Return the picture of a matrix as a PNG."""
    count = len(payoff.names)
    cell = next((size for most, size in CELL_SIZES if count <= most), LEAST_CELL)
    size = 15 if cell > LEAST_CELL else 11
    measure = Pen(1, 1)
    names = [shortened(measure, name, LONGEST_NAME) for name in payoff.names]
    left = MARGIN + 62 + max(measure.width_of(name, size) for name in names)
    top = HEAD + 34
    width = max(NARROWEST, round(left + cell * count + MARGIN + 20))
    pen = Pen(width, top + cell * count + 90)
    pen.text((MARGIN, 52), shortened(pen, title, width - 2 * MARGIN, 28), 28, INK)
    told = "  ·  ".join(("row against column", *facts))
    pen.text((MARGIN, 84), shortened(pen, told, width - 2 * MARGIN, 16), 16, SOFT)
    pen.box(MARGIN / 2, HEAD - 8, width - MARGIN, top + cell * count - HEAD + 22)
    for at, name in enumerate(names):
        middle = top + cell * (at + 0.5)
        pen.text((MARGIN + 24, middle), str(at + 1), size, SOFT, "rm")
        pen.text((MARGIN + 36, middle), name, size, INK, "lm")
        pen.text((left + cell * (at + 0.5), top - 16), str(at + 1), size, SOFT, "mm")
    for row in range(count):
        for column in range(count):
            draw_cell(pen, payoff, (row, column), (left + cell * column, top + cell * row), cell)
    draw_scale(pen, payoff.parity, (left, top + cell * count + 36))
    return pen.finish()


def draw_cell(
    pen: Pen, payoff: Payoff, index: tuple[int, int], corner: tuple[float, float], size: float
) -> None:
    """Draw one share: its colour, its number, its interval."""
    share = float(payoff.share[index])
    (x, y), inner = corner, size - 2
    met = math.isfinite(share) and index[0] != index[1]
    colour = colour_of(share, payoff.parity) if met else LINE if index[0] == index[1] else CARD
    pen.fill(x, y, inner, inner, colour)
    if not met or size < WITH_NUMBER:
        return
    middle = x + inner / 2
    with_interval = size >= WITH_INTERVAL and payoff.low is not None and payoff.high is not None
    digits, letters = (1, 20) if size >= WITH_INTERVAL else (0, 15 if size > WITH_NUMBER else 12)
    shift = 9 if with_interval else 0
    pen.text((middle, y + inner / 2 - shift), f"{100 * share:.{digits}f}", letters, INK, "mm")
    if with_interval and payoff.low is not None and payoff.high is not None:
        ends = f"{100 * payoff.low[index]:.1f}..{100 * payoff.high[index]:.1f}"
        pen.text((middle, y + inner / 2 + 16), ends, 13, INK, "mm")


def draw_scale(pen: Pen, parity: float, corner: tuple[float, float]) -> None:
    """Say which colour means what."""
    x, y = corner
    for at in range(100):
        pen.fill(x + 2 * at, y, 2.4, 12, colour_of(at / 99, parity))
    for value, name in ((0.0, "0"), (parity, f"{100 * parity:.3g}"), (1.0, "100 %")):
        pen.text((x + 200 * value, y + 18), name, 14, SOFT, "mt")
    pen.text((x + 240, y + 6), f"win share; {100 * parity:.3g} % among equals", 14, SOFT, "lm")


def colour_of(share: float, parity: float) -> str:
    """Return the colour of a share: white among equals, however many seats there are."""
    above = share >= parity
    far = (share - parity) / (1 - parity) if above else (parity - share) / parity
    end = BEATS if above else BEATEN
    mixed = [round(255 + (channel - 255) * STRONGEST * far) for channel in end]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)
