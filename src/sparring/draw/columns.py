"""Tables that fit a terminal: columns are dropped, words are never broken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from sparring.draw.text_charts import shorten_middle
from sparring.errors import printable

MIN_NAME = 24
"""Minimum width of the names in the first column, in cells."""
MIN_PROSE = 20
"""Minimum width of a column of sentences, in cells."""
GAP = 2


class Columns(Table):
    """A table whose least important columns are dropped if it does not fit."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        numbers: Sequence[str] = (),
        least: Sequence[str] = (),
        lines: bool = True,
        ascii_only: bool = False,
    ) -> None:
        """Make a table with a header.

        numbers: columns that align right; their cells are never wrapped.
        least: columns to drop, in this order; then the others from the right. The first column
            always stays.
        lines: draw a line under the header.
        ascii_only: write `±` as `+-`.
        """
        super().__init__(
            box=box.SIMPLE_HEAD if lines else None,
            show_edge=False,
            pad_edge=False,
            header_style="bold",
            padding=(0, GAP - lines, 0, 0),
        )
        self.ascii_only = ascii_only
        self.names, self.numbers = list(names), frozenset(numbers)
        self.least = [*least, *(name for name in reversed(self.names[1:]) if name not in least)]
        for name in self.names:
            justify: Literal["left", "right"] = "right" if name in self.numbers else "left"
            self.add_column(Text(name), justify=justify, overflow="fold")

    def add_row(
        self,
        *cells: RenderableType | None,
        style: StyleType | None = None,
        end_section: bool = False,
    ) -> None:
        """Add a row; control characters in cells are escaped."""
        cells = tuple(printable(c) if isinstance(c, str) else c for c in cells)
        if self.ascii_only:
            cells = tuple(c.replace("±", "+-") if isinstance(c, str) else c for c in cells)
        super().add_row(*cells, style=style, end_section=end_section)

    def whole(self) -> Table:
        """Return the table with all columns, without wrapping."""
        return self._with(dict(enumerate(self._wanted())))

    def fit(self, width: int) -> tuple[Table, list[str]]:
        """Return the table in a width of cells, and the dropped columns."""
        sizes = dict(enumerate(self._wanted()))
        least = [self._narrowest(at, width) for at in sizes]
        for name in self.least:
            if total(least[at] for at in sizes) <= width:
                break
            del sizes[self.names.index(name)]
        while total(sizes.values()) > width:
            loose = [at for at in sizes if sizes[at] > least[at]]
            if not loose:
                break
            sizes[max(loose, key=lambda at: sizes[at])] -= 1
        return self._with(sizes), [name for at, name in enumerate(self.names) if at not in sizes]

    def _wanted(self) -> list[int]:
        """Return the widths of columns without wrapping."""
        return [
            max(longest_line(text) for text in (name, *texts(column.cells)))
            for name, column in zip(self.names, self.columns, strict=True)
        ]

    def _narrowest(self, at: int, width: int) -> int:
        """Return the minimum width of a column, which wraps at blanks but not within words."""
        cells = texts(self.columns[at].cells)
        head, whole = longest_word(self.names[at]), max([0, *map(longest_line, cells)])
        if at == 0:  # a long name is shortened
            return max(head, min(whole, max(width // 2, MIN_NAME), width - GAP))
        if self.names[at] in self.numbers:
            return max(head, whole)
        least = MIN_PROSE if whole > MIN_PROSE else whole // 2
        return max([head, least, *map(longest_word, cells)])

    def _with(self, sizes: dict[int, int]) -> Table:
        """Return a copy with these columns and widths."""
        table = Table(
            box=self.box,
            show_edge=False,
            pad_edge=False,
            header_style=self.header_style,
            padding=self.padding,
            caption=self.caption,
            caption_justify=self.caption_justify,
        )
        for at, size in sizes.items():
            column = self.columns[at]
            table.add_column(column.header, justify=column.justify, width=size, overflow="fold")
        cells = [list(self.columns[at].cells) for at in sizes]
        for number, row in enumerate(self.rows):
            first, *others = (column[number] for column in cells)
            (name,) = texts([first])
            if longest_line(name) > sizes[0]:
                first = shorten_middle(name, sizes[0])
            table.add_row(first, *others, style=row.style, end_section=row.end_section)
        return table


def total(sizes: Iterable[int]) -> int:
    """Return the width of a table with columns of these widths."""
    widths = list(sizes)
    return sum(widths) + GAP * len(widths) - 1  # rich keeps a blank behind the last column


def texts(cells: Iterable[object]) -> list[str]:
    """Return cells as plain text."""
    return [cell.plain if isinstance(cell, Text) else str(cell) for cell in cells]


def longest_line(text: str) -> int:
    return max(cell_len(line) for line in text.split("\n"))


def longest_word(text: str) -> int:
    return max((cell_len(word) for word in text.split()), default=0)
