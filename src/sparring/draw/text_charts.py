"""Bars and sparklines made of characters, also in ASCII."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

LEVELS = "▁▂▃▄▅▆▇"  # not "█": lines below each other would touch
ELLIPSIS = "…"
ASCII_FOR = {
    **dict(zip(LEVELS, "_.-~=*#", strict=True)),
    **dict(zip("━─╋┼│╭╮╰╯", "=-|||++++", strict=True)),
    **dict(zip("±–…·×²", "~-~,x2", strict=True)),
}
"""One ASCII character for each, so that the layout stays."""


def is_ascii_only(console: Console, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a console shows ASCII only, by its encoding or the locale C."""
    locales = (environment.get(key) for key in ("LC_ALL", "LC_CTYPE", "LANG"))
    return console.options.ascii_only or next(filter(None, locales), "") in ("C", "POSIX")


def to_ascii(text: str) -> str:
    """Return a text of the same length in ASCII."""
    return "".join(c if c.isascii() else ASCII_FOR.get(c, "?") for c in text)


class AsciiRenderable:
    """A rich renderable, converted to ASCII."""

    def __init__(self, content: RenderableType) -> None:
        self.content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self.content, options):
            yield Segment(to_ascii(text), style, control)


def shorten_middle(text: str, width: int) -> str:
    """Return a text that fits; the middle of a long one is left out."""
    if cell_len(text) <= width:
        return text
    end = max((width - 1) // 2, 0)
    tail = text[len(text) - end :]
    return set_cell_size(text, max(width - 1 - cell_len(tail), 0)) + ELLIPSIS + tail


def bar(share: float, width: int, *, tick: float = math.nan, style: str = "green") -> Text:
    """Return a bar from 0 to 1; the tick marks a share to compare with."""
    full = int(min(max(share, 0.0), 1.0) * width + 1e-9)  # 0.29 * 100 is a little less than 29
    drawn = Text.assemble(("━" * full, style), ("─" * (width - full), "dim"), no_wrap=True)
    if math.isnan(tick) or not width:
        return drawn
    at = min(int(tick * width + 1e-9), width - 1)
    cross = Text("╋" if at < full else "┼", style="bold")
    return drawn[:at] + cross + drawn[at + 1 :]


def sparkline(
    values: Sequence[float], width: int, *, low: float = math.nan, high: float = math.nan
) -> str:
    """Return a series as characters of growing height, from `low` to `high` or over its range."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite or width < 1:
        return ""
    count = min(width, len(finite))
    shown = [mean(finite, i, count) for i in range(count)]
    bottom = min(shown) if math.isnan(low) else low
    top = max(shown) if math.isnan(high) else high
    if top <= bottom:
        return LEVELS[len(LEVELS) // 2] * len(shown)
    steps = ((value - bottom) / (top - bottom) * len(LEVELS) for value in shown)
    return "".join(LEVELS[min(max(int(step), 0), len(LEVELS) - 1)] for step in steps)


def mean(values: Sequence[float], index: int, parts: int) -> float:
    """Return the mean of one of `parts` equal parts of a series."""
    part = values[index * len(values) // parts : (index + 1) * len(values) // parts]
    return sum(part) / len(part)
