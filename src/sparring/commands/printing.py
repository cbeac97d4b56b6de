"""What commands print with: tables, JSON and progress."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 1000
"""Columns where the output is no terminal: nothing is wrapped or cut."""
LINE_EVERY_S = 10.0
"""How often progress is told where there is no terminal."""


def make_console(*, stderr: bool = False) -> Console:
    """Return a console: colours on a terminal, plain text elsewhere."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def make_table(columns: Sequence[str], *, numbers: Sequence[str] = ()) -> Table:
    """Return a table for a terminal, lines for a pipe; columns in `numbers` align right."""
    lines = box.SIMPLE_HEAD if sys.stdout.isatty() else None
    table = Table(box=lines, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for at, name in enumerate(columns):
        justify: Literal["left", "right"] = "right" if name in numbers else "left"
        table.add_column(Text(name), justify=justify, no_wrap=at == 0, overflow="fold")
    return table


def print_table(table: Table) -> None:
    """Print a table; without a terminal, no line ends in blanks."""
    out = make_console()
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as drawn:
        out.print(table)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    print(json.dumps(value, indent=2))


class ProgressBar:
    """Progress on stderr: a bar on a terminal, otherwise a line now and then."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.told = time.monotonic()
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar:
            self.bar.stop()

    def next(self, doing: str) -> None:
        """Say what is being done now; the step before it is finished."""
        if self.bar:
            self.bar.update(self.task, completed=self.done, description=f"{self.title}: {doing}")
        elif time.monotonic() - self.told > LINE_EVERY_S:
            self.told = time.monotonic()
            print(f"{self.title}: {doing} ({self.done}/{self.total})", file=sys.stderr, flush=True)
        self.done += 1
