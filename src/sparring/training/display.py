"""How a run looks while it trains: a live panel on a terminal, a plain line elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sparring.training.member import Status

LINE_EVERY_S = 10.0
"""How often a line is printed where there is no terminal."""


class Display:
    """Shows a run. Call it with every status; it decides what is worth drawing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.quiet = quiet
        self.live: Live | None = None
        self.last_line = 0.0
        if not quiet and sys.stderr.isatty():
            self.live = Live(console=self.console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Display:
        if self.live:
            self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, status: Status) -> None:
        """Draw or print."""
        if self.quiet:
            return
        if self.live:
            self.live.update(panel(status))
        elif time.monotonic() - self.last_line >= LINE_EVERY_S:
            self.last_line = time.monotonic()
            print(line(status), file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    whole = max(int(seconds), 0)
    return f"{whole // 60}:{whole % 60:02d}"


def left(status: Status) -> str:
    """How long it will still take."""
    if status.progress <= 0:
        return "?"
    return clock(status.seconds / status.progress * (1 - status.progress))


def line(status: Status) -> str:
    """A run in one line."""
    wins = " ".join(f"{name} {shown_strength(found)}" for name, found in status.wins.items())
    measured = "win share" if all(f["parity"] < 1 for f in status.wins.values()) else "evaluated"
    total = f"/{status.total_updates}" if status.total_updates else ""
    score = "" if math.isnan(status.score) else f", score {status.score:.1f}"
    return (
        f"{clock(status.seconds)} update {status.update}{total}, "
        f"{status.decisions_per_s:,.0f} decisions/s, {status.samples_per_s:,.0f} samples/s{score}"
        f"{f', {measured}: {wins}' if wins else ''}, {left(status)} left"
    )


def panel(status: Status) -> Panel:
    """A run on a terminal."""
    total = f" of {status.total_updates}" if status.total_updates else ""
    head = Text(
        f"update {status.update}{total}   {clock(status.seconds)} gone, {left(status)} left"
    )
    speed = Text(
        f"{status.decisions_per_s:,.0f} decisions/s   {status.samples_per_s:,.0f} samples/s   "
        f"{status.samples:,} samples learned"
    )
    bar = Table.grid()  # a bar alone would not end its line
    bar.add_row(ProgressBar(total=1.0, completed=status.progress, width=60))
    losses = "   ".join(f"{name} {value:.4f}" for name, value in status.losses.items())
    group = Group(
        head,
        bar,
        speed,
        Text(),
        wins_table(status),
        Text(),
        phases_line(status),
        Text(losses, style="dim"),
    )
    return Panel(group, title=f"sparring train {status.game}", subtitle=str(status.run))


def shown_strength(found: Mapping[str, Any]) -> str:
    """The win share, or the score where a seat plays alone."""
    return f"{found['score']:.1f}" if found["parity"] == 1 else f"{found['win']:.3f}"


def wins_table(status: Status) -> Table | Text:
    """The last evaluation against every opponent."""
    if not status.wins:
        return Text("the first evaluation is under way", style="dim")
    table = Table.grid(padding=(0, 2))
    for name, found in status.wins.items():
        if found["parity"] == 1:
            interval = f"[{found['score_low']:.1f}, {found['score_high']:.1f}]"
            table.add_row(Text(name), Text(f"score {found['score']:.1f}  {interval}"))
            continue
        share = ProgressBar(total=1.0, completed=found["win"], width=24)
        interval = f"{found['win']:.3f}  [{found['low']:.3f}, {found['high']:.3f}]"
        table.add_row(Text(name), share, Text(interval), Text(f"score {found['score']:.1f}"))
    return table


def phases_line(status: Status) -> Text:
    """Where the time goes."""
    shares = sorted(status.phases.items(), key=lambda item: -item[1])
    return Text("   ".join(f"{name} {share:.0%}" for name, share in shares))
