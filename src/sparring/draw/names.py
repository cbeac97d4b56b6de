"""Short names of agents, for pictures and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

RUN = re.compile(
    r"(?P<game>\w+)-(?P<algo>[\w.:]+)-(?P<day>\d{8})-(?P<time>\d{6})(?:-(?P<more>[^/]+))?"
)


def short_name(name: str) -> str:
    """Return what tells an agent apart: skull_king-ppo-20261115-214501/120 is ppo 214501/120.

    Of a run that was given a name, or of any other folder, that is the last part of its path.
    """
    parts = [part for part in name.rstrip("/").split("/") if part]
    number = ""
    if len(parts) > 1 and parts[-1].isdecimal():
        number = f"/{int(parts.pop())}"
        if len(parts) > 1 and parts[-1] == "checkpoints":
            parts.pop()
    last = parts[-1] if parts else name
    made = RUN.fullmatch(last)
    return (f"{made['algo']} {made['more'] or made['time']}" if made else last) + number


def short_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return short names; those that would no longer be told apart stay as they are."""
    short = {name: short_name(name) for name in names}
    taken = list(short.values())
    return tuple(short[name] if taken.count(short[name]) == 1 else name for name in names)
