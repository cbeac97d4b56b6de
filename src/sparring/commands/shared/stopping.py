"""What commands that train do about signals."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from sparring.store.folders import display_path
from sparring.training.agent import Agent


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM while nothing is trained."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.name = signal.Signals(number).name
        self.code = 128 + number

    def told(self, *lines: str) -> int:
        """Print that the signal came, and what is left; return the exit code."""
        first, *rest = lines or ("; `sparring runs` lists what was saved",)
        print(f"{self.name}{first}", *rest, sep="\n", file=sys.stderr)
        return self.code


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupted for a signal, whatever is done meanwhile."""

    def hear(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stopped(agents: Sequence[Agent]) -> int:
    """Say that the runs of a signal are saved, and how to go on; return the exit code."""
    for agent in agents:
        lost = agent.unsaved and not agent.elsewhere
        where = "not saved" if lost else f"saved in {agent.elsewhere or display_path(agent.run)}"
        print(f"{agent.ended}: {where}", file=sys.stderr)
        print(f"go on with: sparring resume {display_path(agent.run)}", file=sys.stderr)
    return 128 + signal.Signals[agents[-1].ended]
