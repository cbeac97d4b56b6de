"""Output of commands: tables, text, JSON and progress."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from sparring.draw.columns import Columns
from sparring.draw.text_charts import AsciiRenderable, is_ascii_only, to_ascii
from sparring.errors import printable

PLAIN_WIDTH = 1000
"""Width without a terminal: nothing is wrapped or cut."""
PROSE_WIDTH = 100
"""Width of prose without a terminal, such as the description of a game."""
MAX_NAMED_COLUMNS = 4
"""Dropped columns that are named below a table."""
LINE_EVERY_S = 10.0
"""Interval of progress lines without a terminal."""


def make_console(*, stderr: bool = False) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    # rich assumes 80 columns where TERM is dumb.
    width, height = shutil.get_terminal_size() if stream.isatty() else (PLAIN_WIDTH, None)
    return Console(
        file=stream, width=width, height=height, highlight=False, markup=False, emoji=False
    )


def make_table(
    columns: Sequence[str],
    *,
    numbers: Sequence[str] = (),
    least: Sequence[str] = (),
    caption: str = "",
) -> Columns:
    """Return a table with lines for a terminal, without lines for a pipe.

    numbers: columns that align right. least: columns that a narrow terminal drops, in this order;
        then those on the right. The first column always stays.
    """
    table = Columns(
        columns,
        numbers=numbers,
        least=least,
        lines=sys.stdout.isatty(),
        ascii_only=is_ascii_only(make_console()),
    )
    if caption:
        table.caption, table.caption_justify = caption, "left"
    return table


def say(line: str) -> None:
    """Print a line about the work that goes on, beside the results."""
    print(f"sparring: {line}", file=sys.stderr, flush=True)


def echo(text: str) -> None:
    """Print text; on a terminal it is wrapped at blanks, so that paths stay whole."""
    out = make_console()
    text = "\n".join(map(printable, text.splitlines()))
    text = to_ascii(text.replace("±", "+-")) if is_ascii_only(out) else text
    if out.is_terminal:
        text = "\n".join(
            textwrap.fill(line, out.width, break_long_words=False, break_on_hyphens=False)
            for line in text.splitlines()
        )
    print(text)


def print_facts(
    facts: Iterable[tuple[str | Text, str]], *, label: int = 12, prose: bool = False
) -> None:
    """Print a line for each name and its text; long texts wrap below themselves.

    prose: wrap without a terminal too, for text that people read and programs do not parse.
    """
    out = make_console()
    if not out.is_terminal:
        for name, text in facts:
            line = f"{name!s:{label}} {text}"
            below = " " * (label + 1)
            print(textwrap.fill(line, PROSE_WIDTH, subsequent_indent=below) if prose else line)
        return
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=label)
    grid.add_column(overflow="fold")
    for name, text in facts:
        grid.add_row(name, text)
    out.print(AsciiRenderable(grid) if is_ascii_only(out) else grid)


def print_table(table: Table, *, prose: bool = False) -> None:
    """Print a table: fitted to a terminal, or whole without one, and without trailing blanks.

    prose: without a terminal wrap long cells if no column is lost, for text that people read.
    """
    out = make_console()
    dropped: list[str] = []
    if isinstance(table, Columns):
        fitted = table.fit(out.width if out.is_terminal else PROSE_WIDTH)
        whole = not out.is_terminal and (fitted[1] or not prose)
        table, dropped = (table.whole(), []) if whole else fitted
    shown = AsciiRenderable(table) if is_ascii_only(out) else table
    if out.is_terminal:
        out.print(shown)
        if dropped:
            named = ", ".join(dropped[:MAX_NAMED_COLUMNS])
            more = len(dropped) - MAX_NAMED_COLUMNS
            rest = f" and {more} more" if more > 0 else ""
            out.print(f"wider terminals also show: {named}{rest}", style="dim")
        return
    with out.capture() as drawn:
        out.print(shown, width=max(out.width, out.measure(table).maximum), crop=False)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def print_styled(
    out: Console, lines: Iterable[str], styles: Iterable[tuple[str, str]], style: str
) -> None:
    """Print lines, colored by the patterns of a game."""
    for line in lines:
        text = Text(line, style=style)
        for pattern, color in styles:
            text.highlight_regex(pattern, color)
        out.print(text, soft_wrap=True)


def print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, indent=2), flush=True)  # a server goes on behind it


class ProgressBar:
    """Progress on stderr: a bar on a terminal, otherwise a line every few seconds."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.last_line_s = time.monotonic()
        self.bar: Progress | None = None
        if sys.stderr.isatty():
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total}"),
                console=make_console(stderr=True),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self.task = self.bar.add_task(title, total=total)

    def __enter__(self) -> ProgressBar:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar:
            self.bar.stop()

    def next(self, doing: str) -> None:
        self.reach(self.done + 1, doing)

    def reach(self, done: int, doing: str = "games") -> None:
        """Set how much is done, and what is done now."""
        self.done = done
        if self.bar:
            self.bar.update(self.task, completed=self.done, description=f"{self.title}: {doing}")
        elif time.monotonic() - self.last_line_s > LINE_EVERY_S:
            self.last_line_s = time.monotonic()
            print(f"{self.title}: {doing} ({self.done}/{self.total})", file=sys.stderr, flush=True)
