"""What is shown while a run is taught: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from sparring.learn.clone import Standing
from sparring.training.display.lines import clock, count

LINE_EVERY_S = 10.0


class Progress:
    """Tells how far reading and learning are."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet, self.told = quiet, time.monotonic()
        self.bar: Bar | None = None
        if not quiet and sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console

            self.bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self.task = self.bar.add_task("records", total=1.0)

    def __enter__(self) -> Progress:
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

    def read(self, done: int, parts: int, positions: int) -> None:
        """Some of the records are read, or of the bots' games played."""
        self.show(f"records: {count(positions)} positions", done / parts)

    def made(self, positions: int, games: int, seconds: float) -> None:
        """All of them are."""
        self.say(f"records: {count(positions)} positions of {count(games)} games, {seconds:.1f} s")

    def learned(self, standing: Standing) -> None:
        """So far the network has learned."""
        self.show(f"cloning: {words(standing)}", standing.progress)

    def done(self, standing: Standing) -> None:
        """It has learned."""
        self.say(f"cloned in {clock(standing.seconds)}: {words(standing)}")

    def show(self, what: str, progress: float) -> None:
        """Move the bar, or print a line if none was printed lately."""
        if self.bar:
            self.bar.update(self.task, completed=progress, description=what)
        elif time.monotonic() - self.told > LINE_EVERY_S:
            self.told = time.monotonic()
            self.say(f"{what} ({progress:.0%})")

    def say(self, line: str) -> None:
        """Print a line."""
        if self.quiet or sys.stderr is None:
            return
        if self.bar:
            self.bar.console.print(line, highlight=False)
        else:
            print(line, file=sys.stderr, flush=True)


def words(standing: Standing) -> str:
    """How it goes, in a line."""
    told = [f"{count(standing.seen / max(standing.seconds, 1e-9))} positions/s"]
    told.append(f"loss {standing.moves:.3f}")
    if standing.measured:
        told.append(f"{standing.measured['accuracy']:.1%} of held-out moves")
    return ", ".join(told)
