"""Shows a run while it trains: redraws the panel, or prints a line now and then."""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live

from sparring.draw.text_charts import AsciiRenderable, is_ascii_only
from sparring.machine import cores, memory_used
from sparring.phases import phase
from sparring.training.display.lines import evaluation_line, line, phase_line
from sparring.training.display.panel import Machine, draw
from sparring.training.status import Status

LINE_EVERY_S = 10.0
"""How often a line is printed where there is no terminal."""
LOOK_EVERY_S = 0.25
"""How often the panel looks at the run."""
REDRAWS_PER_S = 2
LOCAL_MODES = 3
"""Where termios keeps whether typing is echoed."""


class Display:
    """Shows a run. Call it with every status; it decides what is worth drawing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.quiet = quiet
        self.panel: LivePanel | None = None
        self.statuses: dict[Path, Status] = {}
        """By run, as they are now."""
        self.printed_evaluations: dict[Path, int] = {}
        """By run, the evaluation that was printed last."""
        self.phases: dict[Path, int] = {}
        """By run, the phase that was."""
        self.last_line = 0.0
        self.after = ""
        """What the last line said to be left once training is over."""
        if not quiet and self.console.is_terminal and not self.console.is_dumb_terminal:
            self.panel = LivePanel(self.console)

    def __enter__(self) -> Display:
        if self.panel:
            self.panel.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.panel:
            self.panel.stop(list(self.statuses.values()))

    @phase("display")
    def __call__(self, status: Status) -> None:
        """Draw or print. A terminal or pipe that is gone does not end the run."""
        if self.quiet:
            return
        if not self.statuses:
            self._print_lines(status.notes)
        self.statuses[status.run] = status
        if self.panel:
            self.panel.look(list(self.statuses.values()))
            return
        try:
            self._print(status)
        except OSError:
            self.quiet = True

    def _print_lines(self, lines: tuple[str, ...]) -> None:
        """Say something once; above the panel, where there is one."""
        with contextlib.suppress(OSError):
            for text in lines:
                if self.panel:
                    self.console.print(text, markup=False)
                else:
                    print(text, file=sys.stderr, flush=True)

    def _print(self, status: Status) -> None:
        whose = f"{status.run.name}: " if len(self.statuses) > 1 else ""
        if status.evaluated != self.printed_evaluations.get(status.run, -1):
            self.printed_evaluations[status.run] = status.evaluated
            print(whose + evaluation_line(status), file=sys.stderr, flush=True)
        phase = status.phase_progress
        if phase and phase.num_phases > 1 and phase.phase != self.phases.get(status.run, 0):
            self.phases[status.run] = phase.phase
            print(whose + phase_line(status, phase), file=sys.stderr, flush=True)
        due = time.monotonic() - self.last_line >= LINE_EVERY_S
        if status.after:  # nothing moves any more: once is enough
            due = status.after != self.after
        if status.run == next(iter(self.statuses)) and due:
            self.last_line, self.after = time.monotonic(), status.after
            print(line(status), file=sys.stderr, flush=True)


class LivePanel:
    """The panel on a terminal. A thread redraws it, from a copy that the training never touches."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.statuses: list[Status] = []
        self.machine = Machine()
        self.copied_at = 0.0
        self.over = False
        self.live = Live(
            console=console,
            refresh_per_second=REDRAWS_PER_S,
            get_renderable=self.draw,
            redirect_stdout=sys.stdout.isatty(),  # what goes into a file stays out of the panel
        )
        self.stack = ExitStack()

    def start(self) -> None:
        self.stack.enter_context(no_echo())
        self.live.start()

    def look(self, statuses: list[Status], *, now: bool = False) -> None:
        """Copy what there is to draw, if some time has passed or training is over."""
        now = now or any(status.after for status in statuses)
        if not now and time.monotonic() - self.copied_at < LOOK_EVERY_S:
            return
        self.machine = Machine(cores(), memory_used(), gpu_memory())
        self.statuses, self.copied_at = copy.deepcopy(statuses), time.monotonic()

    def stop(self, statuses: list[Status]) -> None:
        """Draw the last state whole, where it stays, and give the terminal back."""
        self.over = True
        self.look(statuses, now=True)
        with self.stack, contextlib.suppress(OSError):  # the terminal may be gone
            self.live.stop()
            self.console.line()

    def draw(self) -> RenderableType:
        """Return the panel; its clocks go on between updates."""
        if not self.statuses:
            return ""
        since = 0.0 if self.over else time.monotonic() - self.copied_at
        width, height = self.console.size
        shown = [later_status(status, since) for status in self.statuses]
        panel = draw(shown, self.machine, width=width, height=height, over=self.over)
        return AsciiRenderable(panel) if is_ascii_only(self.console) else panel


def later_status(status: Status, seconds: float) -> Status:
    """Return a status as it is a little later; once training is over, its clock stands."""
    later = copy.copy(status)
    later.seconds += 0.0 if status.after else seconds
    if status.next_eval_s >= 0:
        later.next_eval_s = max(status.next_eval_s - seconds, 0.0)
    return later


def gpu_memory() -> tuple[int, int] | None:
    """Return the memory in use and all there is, if this process uses a GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    free, there = torch.cuda.mem_get_info()
    return there - free, there


@contextlib.contextmanager
def no_echo() -> Iterator[None]:
    """Keep what is typed off the screen: ^C behind the border would shift all that is redrawn."""
    before = terminal_modes()
    if before is None:
        yield
        return
    quiet = [*before]
    quiet[LOCAL_MODES] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        if terminal_modes() is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def terminal_modes() -> list[Any] | None:
    """Return how the terminal behaves, None if it is not ours to change.

    A process in the background that changed it would be stopped.
    """
    try:
        owner = os.tcgetpgrp(sys.stdin.fileno())
        return termios.tcgetattr(sys.stdin) if owner == os.getpgrp() else None
    except (OSError, ValueError, AttributeError, termios.error):
        return None
