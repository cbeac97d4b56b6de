"""Signals (Ctrl-C, SIGTERM) in commands that train."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from sparring.store.folders import display_path
from sparring.training.agent import Agent


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM outside of the training loop."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.name = signal.Signals(number).name
        self.code = 128 + number

    def report(self, *lines: str) -> int:
        """Print the signal and what was saved; return the exit code."""
        first, *rest = lines or ("; `sparring runs` lists saved runs",)
        print(f"{self.name}{first}", *rest, sep="\n", file=sys.stderr)
        return self.code


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupted when a signal arrives."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, interrupt) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def report_stopped(agents: Sequence[Agent]) -> int:
    """Print where interrupted runs are saved and how to resume them; return the exit code."""
    for agent in agents:
        lost = agent.unsaved and not agent.elsewhere
        where = "not saved" if lost else f"saved in {agent.elsewhere or display_path(agent.run)}"
        print(f"{agent.ended}: {where}", file=sys.stderr)
        print(f"resume it with: sparring resume {display_path(agent.run)}", file=sys.stderr)
    return 128 + signal.Signals[agents[-1].ended]
